"""The gain from trained rankers: their test prompts in a burst, beside noise."""

from __future__ import annotations

import zlib
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import MissingDataError
from benchmarks.common.journal import Journal, read_kept
from benchmarks.common.registry import Row, Settings, Spec
from benchmarks.ranking.parts.rank_worth_case import (
    BURST,
    NEVER_S,
    PAPERS_S,
    Case,
    key,
    limit_of,
)
from benchmarks.ranking.parts.rank_worth_page import FIGURES, chosen, gain
from benchmarks.ranking.parts.rank_worth_traces import WORKLOADS, lengths
from benchmarks.ranking.parts.rank_worth_trained_page import figures, page
from sortedf.errors import SortedfError
from sortedf.json_values import read_lines
from sortedf.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCORES = "ranking_scores.jsonl"
"""Scores of trained rankers on test prompts, beside the results."""

NOISE = "rank_worth.jsonl"
"""Rows of the benchmark with noisy ranks, with which they are compared."""


def run(settings: Settings) -> list[Row]:
    """Simulate the burst in order of every ranker's scores."""
    journal = Journal("rank_worth_trained", settings)
    names = {(w.data, w.model): name for name, w in WORKLOADS.items()}
    rows: list[Row] = []
    for trained in read_scores(settings.results / SCORES):
        name = names.get((trained["data"], trained["model"]))
        if name is not None:
            rows += of_ranker(settings, journal, name, trained)
    return [*curves(settings.results / NOISE), *rows]


def read_scores(path: Path) -> list[Row]:
    """Read the scores written by the benchmark `ranking`.

    Raises
    ------
    MissingDataError
        If it has not.
    """
    if not path.is_file():
        raise MissingDataError(f"{path} is not there: python -m benchmarks ranking.")
    return [row for _, row in read_lines(path, SortedfError)]


def curves(path: Path) -> list[Row]:
    """Gains of noisy ranks over tau_b in a burst, one row for each line of a plot."""
    if not path.is_file():
        return []
    noise = chosen(read_kept(path)[1], part="noise", load=None)
    found = []
    workloads = dict.fromkeys(row["workload"] for row in noise)
    for name, limit, figure in product(workloads, (None, PAPERS_S), FIGURES):
        own = chosen(noise, workload=name)
        fcfs = chosen(own, order="fcfs")
        ranks = [r for r in chosen(own, order="rank") if r["limit_s"] == limit]
        targets = sorted({row["target"] for row in ranks})
        gains = [gain(chosen(ranks, target=t), fcfs, figure) for t in targets]
        found.append(
            {
                "part": "curve", "workload": name, "limit_s": limit, "figure": figure,
                "targets": targets, "gains": gains,
            }
        )  # fmt: skip
    return found


def of_ranker(
    settings: Settings, journal: Journal, name: str, trained: Row
) -> Iterator[Row]:
    """Yardsticks, once for each set of test prompts, and the ranker's order."""
    workload = WORKLOADS[name]
    n = settings.pick(BURST, 400)
    method, seed = trained["method"], trained["seed"]
    true = np.array(trained["lengths"], dtype=np.int64)
    rows = np.random.default_rng([seed, n, 9]).integers(0, len(true), n)
    typical = int(np.median(lengths(settings.data, workload)[0]))
    prompts = np.array(trained.get("prompt_tokens", np.full_like(true, typical)))
    where = {
        "part": "trained", "workload": name, "load": None, "seed": seed, "n": n,
        "test_prompts": len(true),
    }  # fmt: skip
    case = Case(Trace(prompts[rows], true[rows]), workload, where)
    same = zlib.crc32(case.trace.decode.tobytes() + case.trace.prefill.tobytes())
    exact = case.trace.decode.astype(np.float64)
    never = {"starvation_s": NEVER_S}
    fcfs = partial(case.row, "fcfs", {}, order="fcfs", draw=same)
    oracle = partial(case.row, "pars", never, exact, order="oracle", draw=same)
    yield journal.row(key(where, same, "fcfs"), fcfs)
    yield journal.row(key(where, same, "oracle"), oracle)
    score = np.array(trained["scores"], dtype=np.float64)[rows]
    digest = zlib.crc32(score.tobytes())  # another training gives other scores
    for limit in (NEVER_S, PAPERS_S):
        what: Row = {"order": method, "limit_s": limit_of(limit), "draw": same}
        options = {"starvation_s": limit}
        make = partial(case.row, "pars", options, score, **what)
        yield journal.row(key(where, same, method, digest, f"{limit:g} s"), make)


SPEC = Spec(
    "What trained rankers are worth",
    run,
    page,
    figures,
    reads=("ranking", "rank_worth"),
)
