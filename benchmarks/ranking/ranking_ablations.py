"""One setting of the pairwise ranker changed at a time."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.ranking.parts.cells import SETTINGS, Bench, without_lists
from benchmarks.ranking.parts.data import DATA_SETS, SEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAT = ("alpaca_eval", "gpt-4-turbo-2024-04-09")
REASONING = ("reasoning_planning", "o1-mini")

Variant = tuple[str, str, dict[str, Any]]
"""Settings changed: name of the field, title in the table, and values."""


def _values(what: str, field: str, values: tuple[Any, ...]) -> list[Variant]:
    return [(what, f"{value}", {field: value}) for value in values]


VARIANTS: dict[tuple[str, str], list[Variant]] = {
    CHAT: [
        *_values("delta", "delta", (0.0, 0.1, 0.2, 0.4)),
        *_values("margin", "margin", (0.1, 0.5, 1.0, 2.0)),
        *_values("batch_size", "batch_size", (8, 16, 32)),
        *_values("learning_rate", "learning_rate", (1e-4, 3e-4, 1e-3)),
        *[
            ("layers", name, {"layers": layers, "frozen_layers": layers - 1})
            for name, layers in (("first 2", 2), ("first 3", 3))
        ],
        ("layers", "all 6", {}),
    ],
    REASONING: [
        ("truncation", f"{kept}, {tokens}", {"truncation": kept, "max_tokens": tokens})
        for tokens in (48, 96)
        for kept in ("head-tail", "head", "tail")
    ]
    + [("truncation", "head-tail, 256", {"max_tokens": 256})],
}
"""Changes by data set and model. A smaller encoder still trains its last layer only."""

EXPLAINED = {
    "delta": "Least relative difference of a pair.",
    "margin": "By how much the longer one's score should lead.",
    "batch_size": "Prompts of a batch, among which all pairs are made.",
    "learning_rate": "Of the encoder, at its highest; the new layer's is ten times it.",
    "layers": "Size of the encoder: its first layers only; the last one is trained.",
    "truncation": "What is kept of prompts that are longer than so many tokens.",
}


def run(settings: Settings) -> list[Row]:
    """Train the pairwise ranker with every variant and seed; equal cells only once."""
    journal = Journal("ranking_ablations", settings)
    rows: list[Row] = []
    for (data, model), variants in VARIANTS.items():
        of = next(of for of in DATA_SETS if of.name == data)
        bench = Bench.make(settings, of)
        for seed, (what, name, changes) in _order(settings, variants):
            changed = _different(bench, changes)
            key = f"{data}, {model}, seed {seed}, {changed}"
            make = partial(bench.row, model, "pairwise", seed, **changed)
            row = without_lists(journal.row(key, make))
            rows.append({**row, "what": what, "value": name})
    return rows


def _order(
    settings: Settings, variants: list[Variant]
) -> Iterator[tuple[int, Variant]]:
    """All variants with one seed, then with the next."""
    if settings.quick:
        yield from ((SEEDS[0], variant) for variant in variants[:2])
        return
    for seed in SEEDS:
        yield from ((seed, variant) for variant in variants)


def _different(bench: Bench, changes: dict[str, Any]) -> dict[str, Any]:
    """Leave out settings common to all cells, so that equal cells have equal keys."""
    return {
        field: value
        for field, value in changes.items()
        if getattr(bench.common, field) != value
    }


def page(rows: list[Row]) -> str:
    """One table for each change."""
    seeds = sorted({row["seed"] for row in rows})
    parts = [
        "The pairwise ranker of `ranking` with one setting changed at a time; tau_b on "
        f"test prompts, medians (and all values) of {len(seeds)} seeds. Unless a table "
        f"says otherwise delta is {SETTINGS.delta:g}, the margin {SETTINGS.margin:g}, "
        f"{SETTINGS.frozen_layers} of 6 layers are frozen, the learning rate is "
        f"{SETTINGS.learning_rate:g} and a batch has {SETTINGS.batch_size} prompts. "
        "With three seeds and some 160 test prompts a difference below about 0.03 says "
        "little.",
    ]
    for what in dict.fromkeys(row["what"] for row in rows):
        mine = [row for row in rows if row["what"] == what]
        data, model = mine[0]["data"], mine[0]["model"]
        parts += [
            f"## {what}",
            f"{EXPLAINED[what]} On {data}, {model}.",
            _table(what, mine),
        ]
    return "\n\n".join(parts)


def _table(what: str, rows: list[Row]) -> str:
    table = []
    for value in dict.fromkeys(row["value"] for row in rows):
        mine = [row for row in rows if row["value"] == value]
        taus = [row["tau_b"] for row in mine]
        table.append(
            [
                value,
                f"{median(taus):.3f}",
                " ".join(f"{tau:.3f}" for tau in taus),
                f"{median(row['epochs'] for row in mine):g}",
                f"{median(row['cpu_s'] for row in mine):.0f}",
            ]
        )
    return markdown_table([what, "tau_b", "by seed", "epochs", "CPU s"], table)


SPEC = Spec("Settings of the pairwise ranker", run, page, needs=("data",))
