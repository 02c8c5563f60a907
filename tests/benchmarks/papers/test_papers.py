"""The page about the papers finds what it looks for, and says what is missing."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import SPECS
from benchmarks.common.registry import Settings
from benchmarks.papers.papers import MISSING, read_rows
from benchmarks.papers.parts.claims import HEADLINES, paired, value_of


@pytest.fixture
def settings(tmp_path):
    return Settings(quick=False, data=tmp_path, results=tmp_path)


def write(folder, name, rows):
    lines = [{"date": "today"}, *rows]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def found(settings, benchmark, what):
    rows = SPECS["papers"].run(settings)
    (line,) = (
        row for row in rows if row["benchmark"] == benchmark and what in row["what"]
    )
    return line["ours"], line["same"]


def test_without_rows_nothing_is_made_up(settings):
    rows = SPECS["papers"].run(settings)
    assert {row["ours"] for row in rows} == {MISSING}
    assert {row["same"] for row in rows} == {"-"}
    page = SPECS["papers"].page(rows)
    for name in {headline.benchmark for headline in HEADLINES}:
        assert f"`{name}`" in page.rpartition("Not run yet")[2]


def test_every_headline_names_a_benchmark():
    assert {headline.benchmark for headline in HEADLINES} <= set(SPECS)


@pytest.mark.parametrize(("fcfs", "same"), [(4800, "yes"), (2000, "partly")])
def test_latency_is_compared_seed_by_seed(settings, fcfs, same):
    """Medians of ratios, not ratios of medians."""
    rows = []
    for seed, scale in ((1, 1), (2, 10), (3, 100)):
        for method, tel in (("fcfs", fcfs), ("sorted-f", 1000), ("mc-sf", 2000)):
            rows.append(latency(seed, method, 0, tel * scale))
        rows.append(latency(seed, "sorted-f", 20, 900 * scale))
        rows.append(latency(seed, "auto", None, 800 * scale))
    write(settings.results, "latency", rows)
    ratio = fcfs / 1000
    ours = f"{ratio:.2f}; `auto` {fcfs / 800:.2f}"
    assert found(settings, "latency", "FCFS / Sorted-F") == (ours, same)
    assert found(settings, "latency", "MC-SF / Sorted-F")[0].startswith("2.00;")


def latency(seed, method, backfill, tel):
    return {
        "mix": "80/20", "seed": seed, "n": 2000, "method": method,
        "backfill": backfill, "tel": tel, "ratio": tel / 790,
    }  # fmt: skip


@pytest.mark.parametrize(("p99", "same"), [(5.0, "yes"), (9.0, "no")])
def test_tails_are_counted_case_by_case(settings, p99, same):
    rows = [
        {
            "part": "policies", "workload": "w", "load": load, "seed": seed,
            "policy": policy, "ttlt": {"p99": value}, "ttft": {"p99": value},
            "throughput": 1.0, "ttft_limit_99": None,
        }
        for load in (1.0, 1.3)
        for seed in (1, 2, 3)
        for policy, value in (("srpt", 10.0), ("uniboost", p99), ("pars", 1.0))
    ]  # fmt: skip
    write(settings.results, "tails", rows)
    ours, found_same = found(settings, "tails", "P99 TTLT over SRPT")
    assert found_same == same
    assert ours.startswith(f"median {p99 / 10:.2f}, {p99 / 10:.2f}; ")
    assert found(settings, "tails", "tighter TTFT limit") == (MISSING, "-")


def test_ratios_need_both_sides():
    """Seeds without a partner, and figures that are missing, are left out."""
    over = [{"seed": 1, "x": 6.0}, {"seed": 2, "x": 9.0}, {"seed": 3, "x": None}]
    under = [{"seed": 1, "x": 3.0}, {"seed": 3, "x": 3.0}]
    assert paired(over, under, "x") == 2.0
    assert paired(over, [], "x") is None
    assert value_of({"a": {"b": 2}}, "a.b") == 2.0
    assert value_of({"a": None}, "a.b") is None


def test_the_first_line_is_no_row(tmp_path):
    write(tmp_path, "x", [{"seed": 1}])
    assert read_rows(tmp_path / "x.jsonl") == [{"seed": 1}]
    assert read_rows(tmp_path / "none.jsonl") == []


def test_certified_ratios_are_those_of_traces(settings):
    """Medians of the seeds, a part for each size and budget."""
    sizes = ((2000, 16492, 105), (2000, 60000, 101), (100_000, 16492, 110))
    rows = [
        {"source": source, "n": n, "kv_budget": budget, "auto": auto + seed - 2,
         "lower_bound": 100, "seed": seed}
        for n, budget, auto in sizes
        for source in ("traces", "generated")
        for seed in ((1, 2, 3) if source == "traces" else (9,))
    ]  # fmt: skip
    write(settings.results, "certified", rows)
    ours, same = found(settings, "certified", "proven bound")
    assert same == "yes"
    assert ours == (
        "n = 2,000, M = 16,492: 1.050; n = 2,000, M = 60,000: 1.010; "
        "n = 100,000, M = 16,492: 1.100"
    )
