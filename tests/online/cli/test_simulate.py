"""`sortedf simulate`: figures, pictures, and what is refused."""

from __future__ import annotations

import json

import pytest

from online.log_file import read_log
from tests.refusals import refused

ROWS = "arrival_s,prefill_tokens,decode_tokens\n0,5,3\n1,6,2\n1,1,1\n3,2,4\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def simulate(cli, trace):
    """Simulate the trace with a budget of 10 and other arguments."""
    return lambda *arguments: cli("simulate", trace, "--kv-budget", 10, *arguments)


def test_json_has_the_promised_keys(simulate):
    """A row for each policy, with quantiles in it."""
    code, out, _ = simulate("--policy", "fcfs,svf", "--json")
    content = json.loads(out)
    assert code == 0
    assert content["n"] == 4
    assert content["unit"] == "steps"
    assert content["arrivals"] == "trace"
    assert [row["policy"] for row in content["rows"]] == ["fcfs", "svf"]
    for row in content["rows"]:
        wanted = "mean_latency ttft ttlt tbt throughput preemptions gap longest_wait"
        assert set(wanted.split()) <= set(row)
        assert {"p50", "p90", "p95", "p99", "max"} <= set(row["ttlt"])
        assert row["lower_bound"] <= row["total_latency"]


def test_a_table_for_people(simulate):
    """The unit, the gap and the policies."""
    code, out, _ = simulate("--policy", "fcfs,svf")
    assert code == 0
    for word in ("4 requests", "mean (steps)", "P99 TTLT", "tokens/step", "svf"):
        assert word in out


def test_loads_and_seeds(simulate):
    """A row for each run in JSON, medians in the table."""
    arguments = ("--arrivals", "poisson", "--load", "0.5,2", "--seeds", 3)
    rows = json.loads(simulate(*arguments, "--json")[1])["rows"]
    assert [(row["load"], row["seed"]) for row in rows] == [
        (load, seed) for load in (0.5, 2.0) for seed in range(3)
    ]
    out = simulate(*arguments)[1]
    assert "medians of 3 seeds" in out
    assert out.count("fcfs") == 2


def test_seconds(simulate):
    """A preset's clock, and a gap in its seconds."""
    arguments = ("--step-time", "a100-llama-3-8b", "--load", 0.5)
    content = json.loads(simulate(*arguments, "--json")[1])
    assert content["unit"] == "s"
    assert content["rows"][0]["gap"] > 0
    assert content["rows"][0]["bound_method"] == "seconds"


def test_twice_as_fast(simulate):
    """Recorded times, sped up: more wait."""
    slow, fast = (
        json.loads(simulate("--speed-up", factor, "--json")[1])["rows"][0]
        for factor in (1, 10)
    )
    assert fast["mean_latency"] > slow["mean_latency"]
    assert fast["rate"] == 10 * slow["rate"]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--load", "0.5,1.5", "--policy", "fcfs,svf"], "auto"),
        (["--policy", "fcfs,svf"], "auto"),
        (["--policy", "svf"], "auto"),
        (["--policy", "svf"], "timeline"),
        (["--policy", "fcfs,svf"], "slo"),
    ],
)
def test_plots(simulate, tmp_path, arguments, kind):
    """What suits the runs, or what was asked for."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    assert simulate(*arguments, "--plot", path, "--plot-kind", kind)[0] == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "magic"], "unknown policy 'magic'; choose one of: "),
        (["--policy", "svf:speed=1"], "no option 'speed'"),
        (["--policy", "svf:backfill=x"], "backfill = 'x' but must be an integer"),
        (["--policy", "fcfs:backfill=7"], "must be 0 with admission = 'engine'"),
        (["--policy", "plan"], "'plan' needs the option 'start_s'"),
        (["--policy", ""], "has no name"),
        (["--rate", "1", "--load", "1"], "one of --rate, --load and --speed-up"),
        (["--load", "high"], "--load high: give numbers"),
        (["--load", "-1"], "load = -1"),
        (["--rate", "0"], "rate = 0"),
        (["--speed-up", "0"], "--speed-up 0"),
        (["--arrivals", "sometimes"], "unknown kind of arrivals"),
        (["--arrivals", "gamma"], "need a rate"),
        (["--noise", "loud"], "unknown model of prediction errors"),
        (["--arrivals", "gamma:cv=abc", "--rate", "1"], "cv = 'abc'"),
        (["--noise", "lognormal:sgima=1"], "'lognormal' has no option 'sgima'"),
        (["--noise", "lognormal:sigma=x"], "sigma = 'x' but must be a number"),
        (["--noise", "tau:target=2"], "target = 2 but must be from -1 to 1"),
        (["--scores", "none.jsonl"], "none.jsonl cannot be read"),
        (["--scores", "s.jsonl", "--noise", "exact"], "one of --noise and --scores"),
        (["--step-time", "h100"], "presets: a100"),
        (["--step-time", "0"], "constant_s"),
        (["--seeds", "0"], "--seeds"),
        (["--bound", "magic"], "unknown bound 'magic'"),
        (["--bound", "magic", "--policy", "las"], "unknown bound 'magic'"),
        (["--max-wait", "-1"], "--max-wait"),
        (["--trust-hints", "some"], "'some' but must be one of: on, corrected, off"),
        (["--clients", "none.txt"], "--clients none.txt: "),
        (["--clients", __file__], "lines but the trace has 4 requests"),
        (["--plot", "out.xyz"], "must end in .png"),
        (["--plot-kind", "pie"], "--plot-kind 'pie'"),
        (["--policy", "fcfs,svf", "-o", "log.jsonl"], "there are 2"),
        (["-o", "no/such/log.jsonl"], "no/such does not exist"),
        (["--kv-budget", "5"], "row 2 needs 7 KV blocks"),
    ],
)
def test_mistakes(simulate, arguments, message):
    """One line each, exit code 2."""
    assert message in refused(simulate(*arguments))


@pytest.mark.parametrize(
    ("policy", "order"),
    [("pars", [0, 2, 1, 3]), ("svf:admission=engine", [2, 3, 1, 0])],
)
def test_scores_order_the_queue(simulate, tmp_path, policy, order):
    """`pars` goes by the scores, `svf` by the lengths that stand beside them."""
    scores, log = tmp_path / "scores.jsonl", tmp_path / "log.jsonl"
    rows = [(0, 9), (2, 1), (1, 1), (3, 1)]
    lines = [json.dumps({"score": score, "length": length}) for score, length in rows]
    scores.write_text("\n".join(lines) + "\n", encoding="utf-8")
    one_by_one = ("--arrivals", "at-once", "--max-num-seqs", 1)
    code, _, err = simulate(
        *one_by_one, "--policy", policy, "--scores", scores, "-o", log
    )
    assert code == 0, err
    assert read_log(log).start_step.argsort().tolist() == order


def test_hints_are_corrected_by_client(simulate, trace, tmp_path):
    """A liar gains nothing after its first answers; without its name all do."""
    liar, other = (10, 40), (10, 10)
    pairs = [liar if i % 2 else other for i in range(300)]
    rows = [f"{12 * i},{s},{o}" for i, (s, o) in enumerate(pairs)]
    head = ROWS.splitlines()[0]
    trace.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    scores, clients = tmp_path / "scores.jsonl", tmp_path / "clients.txt"
    said = [1 if pair == liar else 10 for pair in pairs]
    lines = [json.dumps({"score": o, "length": o}) for o in said]
    scores.write_text("\n".join(lines), encoding="utf-8")
    names = ["liar" if pair == liar else "other" for pair in pairs]
    clients.write_text("\n".join(names) + "\n", encoding="utf-8")

    def mean(*arguments):
        code, out, err = simulate(
            "--kv-budget", 60, "--policy", "svf:admission=engine", "--scores", scores,
            "--json", *arguments,
        )  # fmt: skip
        assert code == 0, err
        return json.loads(out)["rows"][0]["mean_latency"]

    believed = mean()
    corrected = mean("--trust-hints", "corrected", "--clients", clients)
    assert corrected < 0.9 * believed
    assert corrected < mean("--trust-hints", "off")


def test_a_rank_of_a_given_quality(simulate):
    """The noise is named in the answer."""
    arguments = ("--policy", "pars", "--noise", "tau:target=0.5", "--json")
    code, out, _ = simulate(*arguments)
    assert code == 0
    assert json.loads(out)["noise"] == "tau:target=0.5"


def test_the_budget_is_needed(cli, trace):
    """The size of the memory has no default."""
    assert "--kv-budget is missing" in refused(cli("simulate", trace))


def test_drop_oversize(cli, trace):
    """Left out, and counted."""
    arguments = ("--kv-budget", 7, "--drop-oversize", "--json")
    row = json.loads(cli("simulate", trace, *arguments)[1])["rows"][0]
    assert (row["requests"], row["completed"], row["refused"]) == (4, 4, 0)
    row = json.loads(cli("simulate", trace, "--kv-budget", 6, *arguments[2:])[1])
    assert row["rows"][0]["refused"] == 2


def test_no_output_takes_the_place_of_the_trace(simulate, trace, tmp_path):
    """Not even by another name."""
    link = tmp_path / "link"
    link.symlink_to(trace)
    assert "it is an input" in refused(simulate("-o", link))
    assert trace.read_text(encoding="utf-8") == ROWS


def test_a_plot_that_cannot_be_drawn_loses_no_results(simulate, tmp_path):
    """The table is printed first; what is known before is refused before."""
    pytest.importorskip("matplotlib")
    plot = ("--plot", tmp_path / "out.png", "--plot-kind")
    code, out, err = simulate("--policy", "fcfs,svf", *plot, "gamma")
    assert code == 2
    assert "svf" in out
    assert "uniboost:gamma" in err
    assert "there are 2" in refused(simulate("--policy", "fcfs,svf", *plot, "timeline"))
    assert not (tmp_path / "out.png").exists()
