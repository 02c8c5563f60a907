"""Train a ranker on logs, to know which of two prompts has the longer answer.

Needs the extra `rank`. Here the logs are made up and the encoder is tiny and random, so
that it takes seconds; with yours it is one command, and `bert-base-uncased` or any
encoder of its kind:

    sortedf rank train answers.jsonl --encoder bert-base-uncased -o ranker
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from online.ranking import load_ranker
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.traces import Trace

TOPICS = ["cats", "rain", "bread", "trains", "music"]
KINDS = {"say": 5, "list": 40, "explain": 150, "write": 600}  # tokens, about
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *KINDS, *TOPICS, *"0123456789"]


def main() -> None:
    """Write logs, train, and see what the ranks are worth to a scheduler."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise SystemExit("no torch or transformers: pip install 'sortedf[rank]'")

    # One line for each request that was served: what was asked, how long the answer.
    rng = np.random.default_rng(0)
    write_log(Path("answers.jsonl"), rng, 200)
    write_encoder(Path("encoder"))

    # A share of the prompts is kept for the test, by a hash of their text, so that no
    # prompt is trained on and judged by.
    sortedf(
        "rank", "train", "answers.jsonl", "--encoder", "encoder", "-o", "ranker",
        "--epochs", "4", "--learning-rate", "0.01", "--max-tokens", "16",
    )  # fmt: skip

    # On prompts of another day: -1 is the wrong way round, 0 is a coin, 1 is perfect,
    # which no ranker reaches where answers to like prompts differ.
    write_log(Path("next_day.jsonl"), rng, 200)
    quality = sortedf("rank", "evaluate", "ranker", "next_day.jsonl")
    print(f"Kendall's tau_b above 0.7: {quality['tau_b'] > 0.7}")

    # The scheduler takes lower ranks first. It needs no lengths.
    ranker = load_ranker("ranker")
    lines = Path("next_day.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    scores = ranker.score([row["prompt"] for row in rows])
    lengths = np.array([row["response_tokens"] for row in rows])
    trace = Trace(np.full_like(lengths, 20), lengths)
    rules = EngineModel.vllm(kv_budget=4000, max_num_seqs=16)
    fcfs = simulate(trace, "fcfs", rules).completion_s.mean()
    ours = simulate(trace, "pars", rules, score=scores).completion_s.mean()
    best = simulate(trace, "pars", rules, score=lengths).completion_s.mean()
    gained = (fcfs - ours) / (fcfs - best)
    print(f"of what true lengths would gain, over 80 %: {gained > 0.8}")


def write_log(path: Path, rng: np.random.Generator, n: int) -> None:
    """Write made-up requests: the verb says how long the answer is, roughly."""
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n):
            kind, topic = rng.choice(list(KINDS)), rng.choice(TOPICS)
            prompt = f"{kind} {topic} " + " ".join(map(str, rng.integers(0, 10, 4)))
            tokens = max(1, round(KINDS[kind] * rng.lognormal(0, 0.3)))
            line = {"prompt": prompt, "response_tokens": tokens}
            file.write(json.dumps(line) + "\n")


def sortedf(*arguments: str) -> dict[str, float]:
    """Run a command and return what it says as JSON."""
    command = [sys.executable, "-m", "sortedf", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def write_encoder(folder: Path) -> None:
    """Write a tiny encoder of BERT's kind with random weights and few words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    raw = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, model_max_length=32, pad_token="[PAD]",
        unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=32,
        num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=32,
        initializer_range=0.3,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)


if __name__ == "__main__":
    main()
