"""Published length distributions that the generator reproduces, as points of CDFs.

A pair `(v, q)` means that a share `q` of the requests has at most `v` tokens. Between
two points the share is linear in the logarithm of the length. With the chosen points no
share differs from the source's by more than 0.005 (0.01 for the split texts).

Sources, all public, of which only these numbers are used:

- chat: LMSYS-Chat-1M, first turn and answer of 100,000 conversations, Llama 2 tokens;
  efeslab/Nanoflow, `datasets/traces/lmsys.csv` (Apache-2.0). The service cut answers
  at 512 tokens, which makes the atom at 512 and 513.
- documents: arXiv articles and their abstracts, 28,257 pairs of at most 4,096 tokens
  in all, Llama 2 tokens; microsoft/vidur, `data/processed_traces/
  arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv` (MIT). Where the answer
  is over 1,000 tokens the text was split in the wrong place: short prompt, long answer.
- code: Azure LLM inference trace 2023, code completion, 8,819 requests;
  Azure/AzurePublicDataset, `data/AzureLLMInferenceTrace_code.csv` (CC-BY-4.0; Patel et
  al., Splitwise, ISCA 2024).
- reasoning: 100,000 requests drawn from the histograms of a DeepSeek-R1 service, the
  reasoning counted as answer; alibaba/ServeGen, `data/reason/deepseek-r1`
  (Apache-2.0).
"""

from __future__ import annotations

from dataclasses import dataclass

Anchors = tuple[tuple[int, float], ...]

# fmt: off
CHAT_PREFILL = (
    (2, 0.0352), (3, 0.0554), (5, 0.0928), (6, 0.1148), (8, 0.1679), (10, 0.2196),
    (16, 0.3576), (38, 0.5927), (47, 0.6420), (67, 0.7055), (68, 0.7164), (79, 0.7380),
    (90, 0.7779), (129, 0.8203), (297, 0.8981), (439, 0.9518), (750, 0.9900),
    (1320, 0.9990), (2384, 0.9999), (3894, 1.0000),
)
CHAT_DECODE = (
    (1, 0.0016), (6, 0.0428), (9, 0.0604), (10, 0.0914), (15, 0.1264), (30, 0.2118),
    (64, 0.3307), (88, 0.3950), (191, 0.5693), (268, 0.6637), (416, 0.8304),
    (511, 0.8940), (512, 0.9014), (513, 0.9413), (529, 0.9561), (581, 0.9691),
    (850, 0.9900), (1062, 0.9990), (2010, 0.9999), (4819, 1.0000),
)
ARTICLE_PREFILL = (
    (1, 0.0002), (451, 0.0048), (751, 0.0171), (1093, 0.0461), (1337, 0.0754),
    (1607, 0.1228), (1857, 0.1802), (2164, 0.2730), (2533, 0.4009), (2774, 0.4943),
    (3062, 0.6075), (3304, 0.7088), (3477, 0.7851), (3821, 0.9518), (3936, 0.9902),
    (4013, 0.9990), (4054, 1.0000),
)
ARTICLE_DECODE = (
    (5, 0.0000), (33, 0.0081), (49, 0.0295), (67, 0.0695), (87, 0.1371), (96, 0.1743),
    (109, 0.2345), (135, 0.3675), (215, 0.7131), (242, 0.7857), (277, 0.8528),
    (335, 0.9177), (399, 0.9552), (484, 0.9767), (645, 0.9900), (931, 0.9990),
    (999, 1.0000),
)
SPLIT_PREFILL = (
    (1, 0.0540), (16, 0.0572), (42, 0.1297), (72, 0.2095), (86, 0.2522), (123, 0.3006),
    (246, 0.4295), (416, 0.5721), (816, 0.8002), (1152, 0.8912), (2657, 0.9903),
    (2953, 0.9992), (3022, 1.0000),
)
SPLIT_DECODE = (
    (1004, 0.0008), (1596, 0.1402), (1973, 0.2425), (2287, 0.3409), (2758, 0.5286),
    (2834, 0.5842), (3125, 0.7260), (3273, 0.7728), (3808, 0.9686), (3964, 0.9903),
    (4015, 0.9992), (4056, 1.0000),
)
CODE_PREFILL = (
    (3, 0.0002), (12, 0.0052), (49, 0.0286), (87, 0.0595), (142, 0.0963),
    (261, 0.1648), (479, 0.2224), (727, 0.2857), (839, 0.3162), (975, 0.3612),
    (1201, 0.4395), (1333, 0.4664), (1582, 0.5242), (1915, 0.6038), (2068, 0.6276),
    (2494, 0.7129), (2990, 0.7830), (3660, 0.8375), (4804, 0.8926), (5457, 0.9035),
    (6611, 0.9418), (7372, 0.9509), (7432, 0.9610), (7434, 0.9635), (7435, 0.9752),
    (7436, 0.9980), (7437, 1.0000),
)
CODE_DECODE = (
    (6, 0.0827), (8, 0.2115), (9, 0.3034), (11, 0.4154), (13, 0.5201), (15, 0.5954),
    (19, 0.6937), (22, 0.7390), (31, 0.8172), (64, 0.9198), (109, 0.9630),
    (252, 0.9900), (831, 0.9991), (1899, 1.0000),
)
REASONING_PREFILL = (
    (4, 0.0007), (9, 0.0154), (11, 0.0339), (18, 0.1045), (24, 0.1368), (28, 0.1933),
    (31, 0.2164), (50, 0.2809), (78, 0.3565), (151, 0.4285), (201, 0.4669),
    (205, 0.4818), (210, 0.5229), (216, 0.5434), (254, 0.5633), (259, 0.5728),
    (269, 0.6084), (278, 0.6226), (353, 0.6505), (454, 0.7381), (587, 0.7753),
    (1156, 0.8424), (1230, 0.8520), (1269, 0.8721), (4613, 0.9372), (23534, 0.9900),
    (33753, 0.9990), (44050, 0.9999), (55954, 1.0000),
)
REASONING_DECODE = (
    (28, 0.0000), (122, 0.0057), (174, 0.0214), (230, 0.0534), (280, 0.0942),
    (344, 0.1538), (394, 0.2107), (567, 0.3922), (685, 0.4603), (1006, 0.5720),
    (1137, 0.6145), (1294, 0.6730), (1531, 0.7646), (1783, 0.8170), (2215, 0.8514),
    (5104, 0.9408), (7542, 0.9696), (12604, 0.9900), (20959, 0.9990), (26008, 0.9999),
    (32768, 1.0000),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Population:
    """Distribution of the lengths of one kind of requests.

    Attributes
    ----------
    prefill, decode : tuple of (int, float)
        Points of the CDFs.
    spearman : float
        Rank correlation of the two lengths.
    max_total : int, optional
        Most tokens of prompt and answer together; pairs above it are drawn again.
    """

    prefill: Anchors
    decode: Anchors
    spearman: float
    max_total: int | None = None


SPLIT_SHARE = 0.0439
"""Share of the documents whose text was split in the wrong place."""

CHAT = Population(CHAT_PREFILL, CHAT_DECODE, 0.220)
# A correlation of 0.05 before pairs are drawn again is one of about 0 after it, as in
# the source.
ARTICLE = Population(ARTICLE_PREFILL, ARTICLE_DECODE, 0.05, max_total=4096)
SPLIT = Population(SPLIT_PREFILL, SPLIT_DECODE, -0.33, max_total=4096)
CODE = Population(CODE_PREFILL, CODE_DECODE, -0.021)
REASONING = Population(REASONING_PREFILL, REASONING_DECODE, -0.371)

POPULATIONS = {
    "chat": ((1.0, CHAT),),
    "documents": ((1.0 - SPLIT_SHARE, ARTICLE), (SPLIT_SHARE, SPLIT)),
    "code": ((1.0, CODE),),
    "reasoning": ((1.0, REASONING),),
}
"""For each kind its populations, with their shares of the requests."""
