"""Cost of scoring on one CPU core, and as a share of serving time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.ranking.parts.data import DATA_SETS, encoder, prompts
from online.ranking.batches import padded, score_all
from online.ranking.libraries import load, quiet_transformers, torch
from online.ranking.network import Network, network_of, tokenizer_of
from online.ranking.prompt_tokens import PromptTokens
from sortedf.step_time.presets import A100, COMPUTE_SHARE, PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENS = (32, 64, 128, 256)
BATCHES = (1, 8, 32)
SERVED = "a100-llama-2-7b"
CACHE_TOKENS = 110_000
"""KV cache of a 7B model beside its weights on 80 GB, at half a megabyte a token."""

REQUESTS = {
    "chat (mean of LMSYS first turns)": (92, 207),
    "long chat (mean of ShareGPT)": (2340, 439),
    "reasoning (mean of DeepSeek-R1 traffic)": (1278, 1524),
}
"""Prompt and answer tokens."""

MOST_USUAL = 128
"""Tokens of a prompt for which shares of serving time are given."""

SMALL_SHARE = 0.1
"""Share of a GPU's peak assumed for a small encoder, a cautious guess."""


def run(settings: Settings) -> list[Row]:
    """Time and count every encoder, input length and batch size."""
    torch().set_num_threads(1)
    rows: list[Row] = []
    for name, make in ENCODERS.items():
        network = make()
        network.module.eval()
        for tokens in TOKENS[: settings.pick(len(TOKENS), 1)]:
            operations = _operations(network, tokens)
            for batch in BATCHES[: settings.pick(len(BATCHES), 2)]:
                seconds = _seconds(network, tokens, batch, settings.pick(7, 1))
                rows.append(
                    {
                        "part": "forward",
                        "encoder": name,
                        "tokens": tokens,
                        "batch": batch,
                        "s_per_prompt": seconds,
                        "operations": operations,
                    }
                )
    rows.append(_real_prompts(settings))
    return rows


def _minilm(layers: int | None = None) -> Callable[[], Network]:
    return lambda: network_of(encoder(), layers)


def _bert_base() -> Network:
    """Build it with random weights, as fast as trained ones."""
    with quiet_transformers() as transformers:
        model = transformers.BertModel(transformers.BertConfig())
    head = torch().nn.Linear(model.config.hidden_size, 1)
    return Network(torch().nn.ModuleDict({"encoder": model, "head": head}))


ENCODERS: dict[str, Callable[[], Network]] = {
    "MiniLM, first 3 layers": _minilm(3),
    "MiniLM, 6 layers of width 384": _minilm(),
    "bert-base-uncased, 12 layers of width 768": _bert_base,
}


def _inputs(tokens: int, batch: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.integers(1000, 20_000, (batch, tokens)).tolist()
    return padded(rows, 0, torch().device("cpu"))


def _operations(network: Network, tokens: int) -> int:
    """Count one prompt's multiplications and additions while it runs."""
    counter = load("torch.utils.flop_counter").FlopCounterMode(display=False)
    with torch().no_grad(), counter:
        network.score(*_inputs(tokens, 1))
    return int(counter.get_total_flops())


def _seconds(network: Network, tokens: int, batch: int, tries: int) -> float:
    """Seconds per prompt, the best of several runs."""
    inputs = _inputs(tokens, batch)
    best = np.inf
    with torch().inference_mode():
        network.score(*inputs)
        for _ in range(tries):
            began = time.perf_counter()
            network.score(*inputs)
            best = min(best, time.perf_counter() - began)
    return float(best) / batch


def _real_prompts(settings: Settings) -> Row:
    """Split and score real prompts, in batches by length."""
    of = DATA_SETS[0]
    texts = list(prompts(settings.data, of, of.trained[0]).text)
    texts = texts[: settings.pick(len(texts), 40)]
    network = network_of(encoder())
    tokens = PromptTokens(tokenizer_of(encoder()), 256)
    began = time.perf_counter()
    ids = tokens.encode(texts)
    split_s = time.perf_counter() - began
    score_all(network, ids[:20], tokens.pad, torch().device("cpu"))
    began = time.perf_counter()
    score_all(network, ids, tokens.pad, torch().device("cpu"))
    score_s = time.perf_counter() - began
    return {
        "part": "real prompts",
        "encoder": "MiniLM, 6 layers of width 384",
        "prompts": len(texts),
        "mean_tokens": float(np.mean([len(row) for row in ids])),
        "split_s_per_prompt": split_s / len(texts),
        "s_per_prompt": score_s / len(texts),
    }


def page(rows: list[Row]) -> str:
    """Milliseconds by encoder, and shares of serving time."""
    forward = [row for row in rows if row["part"] == "forward"]
    real = next(row for row in rows if row["part"] == "real prompts")
    tokens = max(row["tokens"] for row in forward if row["tokens"] <= MOST_USUAL)
    return "\n\n".join(
        [
            "One thread of one CPU core; the best of several runs. Milliseconds per "
            "prompt, by tokens of the prompt and prompts in a batch:",
            _times(forward),
            f"{real['prompts']:,} real prompts (alpaca_eval, {real['mean_tokens']:.0f} "
            f"tokens on average) through {real['encoder']}: "
            f"{1000 * real['split_s_per_prompt']:.2f} ms to split into tokens and "
            f"{1000 * real['s_per_prompt']:.2f} ms to score, per prompt.",
            "## Share of serving time",
            _explained(tokens),
            _shares(forward, tokens),
        ]
    )


def _times(rows: list[Row]) -> str:
    table = []
    for name in dict.fromkeys(row["encoder"] for row in rows):
        for tokens in dict.fromkeys(row["tokens"] for row in rows):
            mine = [r for r in rows if r["encoder"] == name and r["tokens"] == tokens]
            times = [f"{1000 * row['s_per_prompt']:.2f}" for row in mine]
            operations = mine[0]["operations"] / 1e9
            table.append([name, str(tokens), f"{operations:.2f}", *times])
    batches = dict.fromkeys(row["batch"] for row in rows)
    columns = ["encoder", "tokens", "billion operations"]
    return markdown_table([*columns, *(f"batch of {b}" for b in batches)], table)


def _explained(tokens: int) -> str:
    return (
        f"By calculation, not measured: a request of a 7B model (`{SERVED}`, whose "
        f"cache of {CACHE_TOKENS:,} tokens is full) takes its share of the GPU's step "
        f"times. The encoder's counted operations for a prompt of {tokens} tokens are "
        f"set against it at {COMPUTE_SHARE:.0%} of the GPU's peak, the share that the "
        f"step times assume, and at {SMALL_SHARE:.0%}, as small models reach less. The "
        "target is 0.1 %. On a CPU the scorer runs beside the engine and takes none "
        "of its time; the last column says how busy it keeps one core while the GPU "
        "serves as fast as it can."
    )


def serving_s(prompt: int, answer: int) -> float:
    """GPU seconds that a request of a full engine takes."""
    running = CACHE_TOKENS / (prompt + answer / 2)
    prefill = prompt * running / answer  # prompt tokens per step
    step_s = PRESETS[SERVED].seconds(round(prefill), round(running), CACHE_TOKENS)
    return answer * step_s / running


def _shares(rows: list[Row], tokens: int) -> str:
    table = []
    batch = max(row["batch"] for row in rows)
    for row in rows:
        if (row["tokens"], row["batch"]) != (tokens, batch):
            continue
        for name, (prompt, answer) in REQUESTS.items():
            seconds = serving_s(prompt, answer)
            shares = [
                row["operations"] / (A100.operations * share) / seconds
                for share in (COMPUTE_SHARE, SMALL_SHARE)
            ]
            table.append(
                [
                    f"{row['encoder']}; {name}",
                    f"{1000 * seconds:.1f}",
                    *(f"{share:.3%}" for share in shares),
                    f"{row['s_per_prompt'] / seconds:.1%}",
                ]
            )
    columns = [
        "encoder; requests",
        "GPU ms per request",
        f"share at {COMPUTE_SHARE:.0%}",
        f"share at {SMALL_SHARE:.0%}",
        "of a CPU core",
    ]
    return markdown_table(columns, table)


SPEC = Spec("Cost of scoring prompts", run, page, needs=("data",))
