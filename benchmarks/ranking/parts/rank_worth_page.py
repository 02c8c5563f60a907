"""The page about the gain from ranks: tables from raw rows."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.common.registry import Row, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterable

FIGURES = {
    "mean_per_token": "mean per token",
    "p90_per_token": "P90 per token",
    "mean_latency": "mean latency",
}
"""Figures by their names in tables."""


TRAINED = 0.5
"""About the tau_b of a good trained ranker."""


def chosen(rows: Iterable[Row], **values: object) -> list[Row]:
    """Return the rows with these entries."""
    return [row for row in rows if all(row.get(key) == v for key, v in values.items())]


def gain(rows: list[Row], base: list[Row], figure: str) -> float:
    """How many times smaller a figure is than the base's, draw by draw."""
    by_draw = {_draw(row): float(row[figure]) for row in base}
    return median(by_draw[_draw(row)] / float(row[figure]) for row in rows)


def _draw(row: Row) -> tuple[object, object]:
    """Key of a row's requests: rows with an equal key have the same requests."""
    return row["seed"], row.get("draw")


def page(rows: list[Row]) -> str:
    """Lay out the burst, the loads, and policies that need a length."""
    noise = chosen(rows, part="noise")
    parts = [_intro(noise), _verdict(noise), "## A burst", *_bursts(noise)]
    parts += ["## An endless burst", *_limits(rows)]
    parts += ["## Poisson arrivals", *_loads(noise)]
    parts += ["## Lengths made from a rank", *_lengths(rows)]
    return "\n\n".join(parts)


def _names(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["workload"] for row in rows))


def _seeds(rows: list[Row]) -> str:
    return ", ".join(str(seed) for seed in dict.fromkeys(row["seed"] for row in rows))


def _targets(rows: list[Row]) -> list[float]:
    return list(dict.fromkeys(row["target"] for row in rows if "target" in row))


def _intro(rows: list[Row]) -> str:
    engines = [
        f"{name}: step times `{row['engine']}`, {row['kv_budget']:,} tokens of KV"
        for name in _names(rows)
        for row in chosen(rows, workload=name)[:1]
    ]
    return (
        f"{rows[0]['n']:,} requests, drawn from real prompts and the lengths of a "
        "model's answers to them (a prompt counts a token for four letters), in the "
        "step engine by vLLM's rules: blocks of 16 tokens, at most 256 requests and "
        f"2,048 tokens in a step. {'; '.join(engines)}. Ranks are noise mixed with the "
        f"true order until their tau_b is as given. Medians of seeds {_seeds(rows)}. "
        "Latency per token is a request's latency over the tokens of its answer, as "
        "the PARS paper (arXiv 2510.03243) measures it."
    )


def _verdict(rows: list[Row]) -> str:
    """Compare the paper's claims with these runs."""
    bursts = [chosen(rows, workload=name, load=None) for name in _names(rows)]
    good = TRAINED if TRAINED in _targets(rows) else max(_targets(rows))
    gains, shares = [], []
    for burst in bursts:
        fcfs = chosen(burst, order="fcfs")
        ranks, oracle = (
            chosen(burst, order="rank", target=target, limit_s=None)
            for target in (good, 1.0)
        )
        gains.append(gain(ranks, fcfs, "mean_per_token"))
        shares.append(_share(ranks, oracle, fcfs, "mean_per_token"))
    idle = _idle_loads(rows)
    return (
        "**The paper's claims.** Several times better than `fcfs` in a burst: with a "
        f"rank of tau_b {good:g} the mean latency per token is {_range(gains, '.1f')} "
        f"times smaller. Near the oracle: that is {_range(shares, '.0%')} of what the "
        "true order saves. Neither holds where hardly anything waits: "
        + (
            f"at loads up to {max(idle):g} no order gains 2 %."
            if idle
            else "see the loads below."
        )
    )


def _range(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def _idle_loads(rows: list[Row]) -> list[float]:
    """Find the loads, from the lowest up, at which the true order gains nothing."""
    idle = []
    for load in sorted({row["load"] for row in rows if row["load"] is not None}):
        here = [chosen(rows, workload=name, load=load) for name in _names(rows)]
        gains = [
            gain(
                chosen(own, order="rank", target=1.0),
                chosen(own, order="fcfs"),
                "mean_per_token",
            )
            for own in here
            if own
        ]
        if max(gains) >= 1.02:
            break
        idle.append(load)
    return idle


def _bursts(rows: list[Row]) -> list[str]:
    parts = []
    for name in _names(rows):
        burst = chosen(rows, workload=name, load=None)
        fcfs = chosen(burst, order="fcfs")
        middle = {key: median(row[key] for row in fcfs) for key in FIGURES}
        parts += [
            f"**{name}.** All come at once. `fcfs`: mean latency "
            f"{middle['mean_latency']:,.0f} s, mean per token "
            f"{middle['mean_per_token']:.2f} s, P90 per token "
            f"{middle['p90_per_token']:.2f} s. How many times smaller they are in "
            "order of the rank, without a limit on waiting and with the paper's 120 s:",
            _gains(burst, fcfs),
            _why(burst, fcfs),
        ]
    return parts


def _gains(burst: list[Row], fcfs: list[Row]) -> str:
    columns = ["tau_b", *FIGURES.values()]
    columns += [f"{name}, 120 s" for name in FIGURES.values()]
    lines = []
    for target in _targets(burst):
        own = chosen(burst, order="rank", target=target)
        line = [f"{target:g}"]
        for limit in (None, 120.0):
            limited = [row for row in own if row["limit_s"] == limit]
            line += [
                f"{gain(limited, fcfs, key):.2f}" if limited else "" for key in FIGURES
            ]
        lines.append(line)
    svf = chosen(burst, order="svf")
    known = [f"{gain(svf, fcfs, key):.2f}" for key in FIGURES]
    lines.append(["svf, true lengths", *known, "", "", ""])
    return markdown_table(columns, lines)


def _why(burst: list[Row], fcfs: list[Row]) -> str:
    """Explain the gain per token in figures of these runs."""
    by_wait = median(r["mean_ttft"] * r["mean_inverse"] for r in fcfs)
    mean_s = median(r["mean_per_token"] for r in fcfs)
    oracle = chosen(burst, order="rank", target=1.0, limit_s=None)
    half = chosen(burst, order="rank", target=TRAINED, limit_s=None) or oracle
    shares = [
        f"{_share(half, oracle, fcfs, key):.0%} of the oracle's saving in {name}"
        for key, name in FIGURES.items()
    ]
    return (
        "Under `fcfs` a wait does not depend on the answer, so that the mean per token "
        "is about the mean wait times the mean of 1 / tokens, here "
        f"{by_wait:.2f} s of {mean_s:.2f} s, and the time of a step. It counts above "
        "all the waits of the shortest answers, which shortest first saves; mean "
        "latency counts all alike. Answers vary by "
        f"{fcfs[0]['spread']:.2f} of their mean. At "
        f"tau_b {TRAINED:g}: {', '.join(shares)}."
    )


def _share(own: list[Row], oracle: list[Row], fcfs: list[Row], figure: str) -> float:
    best = {row["seed"]: float(row[figure]) for row in oracle}
    worst = {row["seed"]: float(row[figure]) for row in fcfs}
    return median(
        (worst[row["seed"]] - float(row[figure]))
        / (worst[row["seed"]] - best[row["seed"]])
        for row in own
    )


def _limits(rows: list[Row]) -> list[str]:
    lines = [
        [row["workload"], *(f"{row[key]:.1f}" for key in FIGURES)]
        for row in chosen(rows, part="limit")
    ]
    return [
        "The longer the line, the less a request's own service counts. With infinitely "
        "many requests at once the true order of lengths would make the figures so "
        "many times smaller than `fcfs`, by a calculation from the lengths alone "
        "(`benchmarks/ranking/parts/rank_worth_limit.py`):",
        markdown_table(["", *FIGURES.values()], lines),
        "The PARS paper reports up to 15.7 (mean per token) and 12.3 (P90) for Llama "
        "3.1 under load, and 7.7 in a burst of 2,000, on lengths of its own.",
    ]


def _loads(rows: list[Row]) -> list[str]:
    parts = [
        "Poisson arrivals of the same requests. At load 1.0 work arrives as fast as an "
        "engine that is always full can serve it; a little above it the queue has no "
        "time to grow before the last arrival. How many times smaller than under "
        "`fcfs` the mean latency per token is, without a limit on waiting, and in "
        "brackets the mean latency:"
    ]
    for name in _names(rows):
        own = [r for r in chosen(rows, workload=name) if r["load"] is not None]
        targets = _targets(own)
        lines = []
        for load in dict.fromkeys(row["load"] for row in own):
            here = chosen(own, load=load)
            fcfs = chosen(here, order="fcfs")
            line = [f"{load:g}", f"{median(r['mean_per_token'] for r in fcfs):.3f}"]
            for target in targets:
                rank = chosen(here, order="rank", target=target, limit_s=None)
                line.append(_two(rank, fcfs))
            line.append(_two(chosen(here, order="svf"), fcfs))
            lines.append(line)
        columns = ["load", "fcfs, s per token", *(f"{t:g}" for t in targets), "svf"]
        parts += [f"**{name}**", markdown_table(columns, lines)]
    return parts


def _two(rows: list[Row], base: list[Row]) -> str:
    first = gain(rows, base, "mean_per_token")
    return f"{first:.2f} ({gain(rows, base, 'mean_latency'):.2f})"


def _lengths(rows: list[Row]) -> list[str]:
    parts = [
        "Scores turned into quantiles of the length by what was seen on as many other "
        "requests with the same noise: the median, for `sorted-f-amin` the lower "
        "quartile. A burst; seconds, medians over the seeds."
    ]
    own = chosen(rows, part="lengths")
    for name in _names(own):
        lines = []
        here = chosen(own, workload=name)
        for target in _targets(here):
            for order in dict.fromkeys(row["order"] for row in here):
                same = chosen(here, target=target, order=order)
                lines.append([order, f"{target:g}", *_seconds(same)])
        columns = ["policy", "tau_b", *FIGURES.values(), "recomputed tokens"]
        parts += [f"**{name}**", markdown_table(columns, lines)]
    return parts


def _seconds(rows: list[Row]) -> list[str]:
    def middle(key: str) -> float:
        return median(float(row[key]) for row in rows)

    return [
        f"{middle('mean_per_token'):.3f}",
        f"{middle('p90_per_token'):.3f}",
        f"{middle('mean_latency'):,.1f}",
        f"{middle('recomputed_tokens'):,.0f}",
    ]
