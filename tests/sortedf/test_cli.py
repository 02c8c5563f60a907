"""The command line: JSON keys, exit codes, one line for a user's mistake."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys

import pytest

from sortedf import METHODS, Instance, check, read, solve
from sortedf.bounds.table import certified_bounds
from tests.refusals import refused

TRACE = "prefill_tokens,decode_tokens\n5,3\n6,2\n1,1\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


def test_solve_json(cli, trace):
    """One JSON object with the promised keys, and nothing else."""
    code, out, _ = cli("solve", trace, "--kv-budget", 10, "--json")
    content = json.loads(out)
    assert code == 0
    assert content["total_latency"] == 8
    assert content["lower_bound"] == 8
    assert content["status"] == "optimal"
    assert content["dropped"] == []
    wanted = "n kv_budget method total_latency mean_latency makespan peak_kv"
    wanted += " lower_bound gap status runtime_s"
    assert set(wanted.split()) <= set(content)


def test_solve_for_people(cli, trace):
    """A table with latency, bound and gap."""
    code, out, _ = cli("solve", trace, "--kv-budget", 10, "--bound", "fluid")
    assert code == 0
    for word in ("3 requests", "mean latency", "2.7 steps", "gap", "14.29%"):
        assert word in out


def test_solve_writes_what_check_accepts(cli, trace, tmp_path):
    """The schedule file is in row order and replays."""
    path = tmp_path / "schedule.json"
    cli("solve", trace, "--kv-budget", 10, "--method", "svf", "-o", path)
    content = json.loads(path.read_text(encoding="utf-8"))
    expected = solve(Instance([5, 6, 1], [3, 2, 1], 10), "svf").schedule.start
    assert content["start"] == expected.tolist()
    assert content["kv_budget"] == 10
    assert content["method"] == "svf"
    code, out, _ = cli("check", trace, path, "--kv-budget", 10, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["feasible"]
    assert report["violations"] == []
    assert {"total_latency", "peak_kv"} <= set(report)


def test_check_fails_for_a_broken_schedule(cli, trace, tmp_path):
    """Exit code 1, and what is broken."""
    path = tmp_path / "schedule.json"
    path.write_text("[0, 0, 0]", encoding="utf-8")
    code, out, _ = cli("check", trace, path, "--kv-budget", 10, "--json")
    report = json.loads(out)
    assert code == 1
    assert not report["feasible"]
    assert report["violations"][0]["message"].startswith("step 1: 15 KV tokens held")
    code, out, _ = cli("check", trace, path, "--kv-budget", 10)
    assert code == 1
    assert "step 1: 15 KV tokens held, kv_budget is 10" in out


def test_compare_json(cli, trace):
    """A row for each method, with speed-up and gap."""
    code, out, err = cli("compare", trace, "--kv-budget", 10, "--json")
    content = json.loads(out)
    assert code == 0
    methods = {name for name, method in METHODS.items() if method.same_as is None}
    assert methods == set(METHODS) - {"exact"}
    assert {row["method"] for row in content["rows"]} == methods
    # A slow run, such as one that compiles, says how far it is; nothing else is said.
    assert all("methods: " in line for line in err.splitlines()), err
    for row in content["rows"]:
        wanted = {"method", "mean_latency", "speedup_vs_fcfs", "gap", "runtime_s"}
        assert wanted <= set(row)
    fcfs = next(row for row in content["rows"] if row["method"] == "fcfs")
    assert fcfs["speedup_vs_fcfs"] == 1


def test_compare_chosen_methods(cli, trace):
    """Without fcfs among them the speed-up is still against it."""
    arguments = ("--kv-budget", 10, "--methods", "svf, auto,svf", "--json")
    _, out, _ = cli("compare", trace, *arguments)
    rows = json.loads(out)["rows"]
    assert [row["method"] for row in rows] == ["svf", "auto"]
    assert rows[0]["speedup_vs_fcfs"] >= 1


def test_compare_says_what_it_leaves_out(cli, tmp_path):
    """A method that is not meant for the size is named on standard error."""
    path = tmp_path / "trace.csv"
    path.write_text("prefill_tokens,decode_tokens\n" + "3,4\n" * 150, encoding="utf-8")
    _, out, err = cli("compare", path, "--kv-budget", 50)
    assert "exact-dp is meant for up to 100 requests and left out" in err
    assert "exact-dp" not in out


def test_bound_json(cli, trace):
    """The bound with its method."""
    code, out, _ = cli("bound", trace, "--kv-budget", 10, "--method", "fluid", "--json")
    content = json.loads(out)
    assert code == 0
    assert content["lower_bound"] == 7
    assert content["method"] == "fluid"
    assert "runtime_s" in content
    assert "7 steps" in cli("bound", trace, "--kv-budget", 10, "--method", "fluid")[1]


def test_bound_ends_where_the_gap_is_small_enough(cli, tmp_path):
    """The target is a gap of the best list; without one it climbs on."""
    path = tmp_path / "mix.csv"
    assert cli("generate", "mix", "--n", 120, "--seed", 1, "-o", path)[0] == 0
    arguments = ("bound", path, "--kv-budget", 16492, "--method", "dual", "--json")
    values = []
    for gap in ((), ("--target-gap", 0.06), ("--target-gap", 9)):
        code, out, _ = cli(*arguments, *gap)
        assert code == 0
        values.append(json.loads(out)["lower_bound"])
    instance = read(path, kv_budget=16492)
    listed = solve(instance, "best-list", bound="none").tel
    assert listed / 10 <= values[2] < values[1] < values[0]
    assert listed <= 1.06 * values[1]
    assert "must be a finite" in refused(cli(*arguments, "--target-gap", "inf"))


def test_certificate_is_written_and_checked(cli, trace, tmp_path):
    """Anybody can evaluate the prices again; a false claim fails."""
    path = tmp_path / "proof.json"
    arguments = ("--kv-budget", 10, "--json", "--certificate", path)
    code, out, _ = cli("bound", trace, "--method", "dual", *arguments)
    assert code == 0
    bound = json.loads(out)["lower_bound"]
    code, out, _ = cli("check", trace, *arguments)
    assert code == 0
    assert json.loads(out)["lower_bound"] == bound
    assert json.loads(out)["certificate_valid"]
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "lower_bound": bound + 1}), encoding="utf-8")
    code, out, _ = cli("check", trace, *arguments)
    assert code == 1
    assert not json.loads(out)["certificate_valid"]
    assert json.loads(out)["lower_bound"] == bound
    code, out, _ = cli("check", trace, "--kv-budget", 10, "--certificate", path)
    assert code == 1
    assert "CLAIMS TOO MUCH" in out


@pytest.mark.parametrize("method", certified_bounds())
def test_every_bound_writes_a_certificate_that_holds(cli, trace, tmp_path, method):
    """Whichever of them wins under auto."""
    path = tmp_path / "proof.json"
    arguments = ("--kv-budget", 10, "--json", "--certificate", path)
    code, out, _ = cli("bound", trace, "--method", method, *arguments)
    assert code == 0
    code, checked, _ = cli("check", trace, *arguments)
    assert code == 0
    assert json.loads(checked)["lower_bound"] == json.loads(out)["lower_bound"]


def test_certificate_of_another_instance_is_refused(cli, trace, tmp_path):
    """The hash is over lengths, arrivals and budget."""
    path = tmp_path / "proof.json"
    arguments = ("--method", "dual", "--certificate", path)
    assert cli("bound", trace, "--kv-budget", 10, *arguments)[0] == 0
    result = cli("check", trace, "--kv-budget", 11, "--certificate", path)
    assert "another instance" in refused(result)
    assert "give a schedule, or a certificate" in refused(
        cli("check", trace, "--kv-budget", 11)
    )


def test_generate_then_solve(cli, tmp_path):
    """What is generated is a trace like any other."""
    path = tmp_path / "mix.csv"
    arguments = ("--n", 50, "--long-share", 0.2, "--seed", 1, "-o", path, "--json")
    code, out, _ = cli("generate", "mix", *arguments)
    assert code == 0
    assert json.loads(out)["n"] == 50
    assert json.loads(out)["path"] == str(path)
    code, out, _ = cli("solve", path, "--kv-budget", 16492, "--json")
    assert json.loads(out)["n"] == 50


def test_generate_names_its_file_by_the_kind(cli, tmp_path, monkeypatch):
    """Without -o the trace is in the folder where one stands."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = cli("generate", "chat", "--n", 5, "--json")
    assert code == 0
    assert json.loads(out)["path"] == "chat.csv"
    assert [path.name for path in tmp_path.iterdir()] == ["chat.csv"]


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_plots_are_written(cli, trace, tmp_path, command):
    """A picture where people would rather look."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    code, _, _ = cli(command, trace, "--kv-budget", 10, "--plot", path)
    assert code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_arrivals_in_seconds_become_steps(cli, tmp_path):
    """With half a second a step, 3 s are step 6."""
    path = tmp_path / "trace.csv"
    rows = "arrival_s,prefill_tokens,decode_tokens\n0,5,3\n3,6,2\n"
    path.write_text(rows, encoding="utf-8")
    arguments = ("--kv-budget", 10, "--json")
    content = json.loads(cli("solve", path, *arguments, "--step-time", 0.5)[1])
    assert (content["makespan"], content["total_latency"]) == (8, 5)
    content = json.loads(cli("solve", path, *arguments, "--backlog")[1])
    assert content["makespan"] == 5


def test_drop_oversize_says_which(cli, tmp_path):
    """Left out, listed, and null in the schedule file."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE + "10,1\n", encoding="utf-8")
    message = refused(cli("solve", path, "--kv-budget", 10))
    assert "1 of 4 requests can never run" in message
    assert "row 5 (s=10, o=1, needs 11)" in message
    schedule = tmp_path / "schedule.json"
    arguments = ("--kv-budget", 10, "--drop-oversize", "--json")
    code, out, _ = cli("solve", path, *arguments, "-o", schedule)
    assert code == 0
    assert json.loads(out)["dropped"] == [5]
    assert json.loads(schedule.read_text(encoding="utf-8"))["start"][3] is None
    code, out, _ = cli("check", path, schedule, *arguments)
    assert code == 0
    assert json.loads(out)["n"] == 3
    schedule.write_text("[0, null, 5, null]", encoding="utf-8")
    message = refused(cli("check", path, schedule, *arguments))
    assert "row 3 of" in message
    assert "has no start step" in message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0", "0"),
        ("-3", "-3"),
        ("many", "many"),
        ("1e30", "1e30"),
        ("nan", "nan"),
        ("1_0", "1_0"),  # ten, to Python
    ],
)
def test_bad_kv_budget(cli, trace, text, shown):
    """What was given and what is allowed."""
    message = refused(cli("solve", trace, f"--kv-budget={text}"))
    assert message.startswith(f"--kv-budget {shown}: give the size of the KV cache")
    assert "from 1 to 2147483647" in message


@pytest.mark.parametrize("command", ["solve", "compare", "bound"])
def test_missing_kv_budget(cli, trace, command):
    """Nobody can guess how much memory there is."""
    message = refused(cli(command, trace))
    assert message.startswith("--kv-budget is missing: give the size")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--method", "magic"],
            "unknown method 'magic'; choose one of: alpha-points, auto",
        ),
        (["--bound", "magic"], "unknown bound 'magic'; choose one of: "),
        (["--seed", "-1"], "--seed"),
        (["--backfill", "x"], "--backfill"),
        (["--time-limit", "-1"], "--time-limit"),
        (["--step-time", "0"], "step_time_s = 0.0 but must be"),
        (["--block-size", "0"], "--block-size"),
        (["--plot", "out.xyz"], "must end in .png, .svg or .pdf"),
        (["--plot", "no/such/folder/out.png"], "no/such/folder"),
        (["-o", "no/such/folder/out.json"], "no/such/folder"),
        (["--colour"], "--colour"),
        (["--tokenizer", "no/such"], "no/such"),
        (["--objective", "p50"], "choose one of tel, weighted-tel, makespan"),
        (["--objective", "weighted-tel"], "--weights FILE go together"),
        (["--weights", "w.txt"], "--weights FILE go together"),
        (["--max-latency", "9", "--p99-latency", "9"], "give one of them"),
        (["--max-latency", "0"], "--max-latency 0: must be from 1"),
        (["--p99-latency", "0"], "--p99-latency 0: must be from 1"),
        (["--p99-latency", "x"], "--p99-latency"),
        (["--objective", "makespan", "--method", "svf"], "'svf' minimises TEL alone"),
    ],
)
def test_bad_options(cli, trace, arguments, message):
    """Each is one line that names the option."""
    assert message in refused(cli("solve", trace, "--kv-budget", 10, *arguments))


def test_unknown_command(cli):
    """One line, not a page."""
    assert "dance" in refused(cli("dance"))


BAD_FILES = {
    "empty": (b"", "empty"),
    "header only": (b"prefill_tokens,decode_tokens\n", "no requests"),
    "unknown columns": (b"a,b\n1,2\n", "ContextTokens"),
    "no integer": (b"prefill_tokens,decode_tokens\n5,x\n", "line 2"),
    "fraction": (b"prefill_tokens,decode_tokens\n5,1.5\n", "line 2"),
    "zero": (b"prefill_tokens,decode_tokens\n5,1\n0,1\n", "line 3"),
    "negative": (b"prefill_tokens,decode_tokens\n5,-1\n", "line 2"),
    "nan": (b"prefill_tokens,decode_tokens\n5,nan\n", "line 2"),
    "huge": (b"prefill_tokens,decode_tokens\n5,1e30\n", "line 2"),
    "ragged": (b"prefill_tokens,decode_tokens\n5,1\n5\n", "line 3"),
    "broken gzip": (gzip.compress(TRACE.encode())[:-9], "gzip"),
    "binary": (bytes(range(256)), "text"),
}


@pytest.mark.parametrize("kind", sorted(BAD_FILES))
def test_bad_traces(cli, tmp_path, kind):
    """Whatever is wrong with a file is said in one line, and no output is left."""
    content, message = BAD_FILES[kind]
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    output = tmp_path / "schedule.json"
    said = refused(cli("solve", path, "--kv-budget", 10, "-o", output))
    assert str(path) in said
    assert message in said
    assert sorted(tmp_path.iterdir()) == [path]


def test_missing_file_and_folder(cli, tmp_path):
    """A path that is no file."""
    arguments = ("--kv-budget", 10)
    assert "none.csv" in refused(cli("solve", tmp_path / "none.csv", *arguments))
    assert str(tmp_path) in refused(cli("solve", tmp_path, *arguments))


def test_bom_and_crlf_simply_work(cli, tmp_path):
    """Spreadsheets write those."""
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\xef\xbb\xbf" + TRACE.replace("\n", "\r\n").encode())
    assert cli("solve", path, "--kv-budget", 10)[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[0, 0]", "2 start steps but"),
        ("{}", 'a list "start"'),
        ("[0, 0, -1]", "start of row 3 is -1"),
        ("[0, 0, true]", "start of row 3 is true"),
        ("[0, 0, 1.5]", "start of row 3 is 1.5"),
        ("[0, 0, null]", "row 4 of"),
        ("nonsense", "is no JSON"),
    ],
)
def test_bad_schedule_files(cli, trace, tmp_path, content, message):
    """Another length, another type, another file."""
    path = tmp_path / "schedule.json"
    path.write_text(content, encoding="utf-8")
    assert message in refused(cli("check", trace, path, "--kv-budget", 10))


def test_an_output_that_fails_leaves_what_was_there(cli, trace, tmp_path, monkeypatch):
    """An old schedule survives a run that breaks while it writes."""
    path = tmp_path / "schedule.json"
    path.write_text("old", encoding="utf-8")

    def broken(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", broken)
    arguments = ("--kv-budget", 10, "-o", path)
    assert "No space left" in refused(cli("solve", trace, *arguments))
    assert path.read_text(encoding="utf-8") == "old"
    assert sorted(tmp_path.iterdir()) == [path, trace]


def test_unwritable_output_is_refused_before_the_work(cli, trace, monkeypatch):
    """Nobody waits for a schedule that then cannot be kept."""

    def never(*arguments, **options):
        raise AssertionError("solved although the output folder is missing")

    monkeypatch.setattr("sortedf.cli.solve.solve", never)
    message = refused(cli("solve", trace, "--kv-budget", 10, "-o", "no/such/s.json"))
    assert "no/such does not exist" in message
    assert sorted(trace.parent.iterdir()) == [trace]


def test_methods_are_listed(cli):
    """Every method with what it costs and what it guarantees."""
    _, out, _ = cli("methods", "--json")
    assert {row["method"] for row in json.loads(out)["rows"]} == set(METHODS)
    _, out, _ = cli("methods")
    assert "1 + 2 / (1 - max peak / M)" in out


def test_methods_of_other_packages_are_listed():
    """In a fresh process, where nobody has asked for one of them before."""
    done = run_module("methods", "--json")
    names = {row["method"] for row in json.loads(done.stdout)["rows"]}
    assert {"svf", "auto", "sorted-lp", "milp", "branching"} <= names


COMMANDS = [
    "solve", "compare", "bound", "check", "generate", "simulate", "calibrate",
    "methods", "bounds", "policies", "run",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(cli, command):
    """Every command shows how to call it."""
    code, out, _ = cli(command, "--help")
    assert code == 0
    assert f"Example: sortedf {command}" in " ".join(out.split())


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sortedf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_as_a_module_with_exit_codes(trace):
    """`python -m sortedf` is the same program, seen from outside."""
    good = run_module("solve", str(trace), "--kv-budget", "10", "--json")
    assert good.returncode == 0
    assert json.loads(good.stdout)["n"] == 3
    bad = run_module("solve", str(trace), "--kv-budget", "0")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.count("\n") == 1
    version = run_module("--version")
    assert version.stdout.startswith("sortedf ")


def test_solution_is_what_the_library_says(cli, trace):
    """Command line and library agree."""
    _, out, _ = cli("solve", trace, "--kv-budget", 10, "--json", "--method", "lpt")
    instance = Instance([5, 6, 1], [3, 2, 1], 10)
    result = solve(instance, "lpt")
    assert json.loads(out)["total_latency"] == result.tel
    assert check(instance, result.schedule).feasible


def test_progress_lines_in_a_log(capsys, monkeypatch):
    """Where standard error is no terminal, long work says how far it is."""
    from sortedf.cli import progress

    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    with progress.progress("work") as report:
        report(1000, 5000)
    assert capsys.readouterr().err == "sortedf: work: 1,000 of 5,000\n"


def test_progress_bar_on_a_terminal(monkeypatch):
    """On a terminal it is a bar, and it goes away."""
    from sortedf.cli import progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress("work") as report:
        report(1, 2)
        report(2, 2)
    erase = "\x1b[2K"
    assert "work" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith(erase)


@pytest.fixture
def crowd(tmp_path):
    """A trace whose schedules are not all alike."""
    path = tmp_path / "crowd.csv"
    lines = [f"{1 + 37 * k % 90},{1 + 53 * k % 70}\n" for k in range(60)]
    path.write_text("prefill_tokens,decode_tokens\n" + "".join(lines), encoding="utf-8")
    return path


def test_solve_searches_from_a_given_schedule(cli, crowd, tmp_path):
    """It is never worse; what is no schedule of the trace is refused."""
    path = tmp_path / "first.json"
    budget = ("--kv-budget", 400, "--json")
    _, out, _ = cli("solve", crowd, *budget, "--method", "svf", "-o", path)
    first = json.loads(out)["total_latency"]
    search = ("--rounds", 1, "--jobs", 2, "--start", path)
    code, out, _ = cli("solve", crowd, *budget, *search)
    found = json.loads(out)
    assert code == 0
    assert found["total_latency"] < first
    assert found["found_by"] == "improve"
    assert found["backfill"] is None
    path.write_text(json.dumps([0] * 60), encoding="utf-8")
    assert "no feasible schedule" in refused(cli("solve", crowd, *budget, *search))


def test_solve_stops_at_the_target_gap(cli, crowd):
    """A gap that the lists have already needs no search."""
    _, out, _ = cli("solve", crowd, "--kv-budget", 400, "--target-gap", 9)
    assert "found by" in out
    assert "backfill" in out


def test_solve_minimises_the_makespan(cli, crowd):
    """Shorter than what TEL gives, with a bound of its own."""
    budget = ("--kv-budget", 400, "--rounds", 2, "--json")
    tel = json.loads(cli("solve", crowd, *budget)[1])
    code, out, _ = cli("solve", crowd, *budget, "--objective", "makespan")
    found = json.loads(out)
    assert code == 0
    assert found["objective"] == "makespan"
    assert found["value"] == found["makespan"] < tel["makespan"]
    assert found["lower_bound"] <= found["makespan"]
    assert found["gap"] == pytest.approx(found["value"] / found["lower_bound"] - 1)
    _, text, _ = cli("solve", crowd, *budget[:-1], "--objective", "makespan")
    assert "longest latency" in text


def test_solve_weighs_requests(cli, crowd, tmp_path):
    """The heavy ones come first; every wrong file is refused with its line."""
    path = tmp_path / "weights.txt"
    weights = [50 if k % 4 == 0 else 1 for k in range(60)]
    path.write_text("".join(f"{w}\n" for w in weights), encoding="utf-8")
    asked = ("--kv-budget", 400, "--objective", "weighted-tel", "--weights", path)
    schedule = tmp_path / "weighted.json"
    code, out, _ = cli("solve", crowd, *asked, "--json", "-o", schedule)
    found = json.loads(out)
    start = json.loads(schedule.read_text(encoding="utf-8"))["start"]
    ends = [p + 1 + 53 * k % 70 for k, p in enumerate(start)]
    assert code == 0
    assert found["value"] == sum(w * c for w, c in zip(weights, ends, strict=True))
    assert found["lower_bound"] <= found["value"]
    assert found["bound_method"] == "volume"
    assert "weighted-tel" in cli("solve", crowd, *asked)[1]
    path.write_text("1\n" * 59, encoding="utf-8")
    assert "has 59 lines but" in refused(cli("solve", crowd, *asked))
    path.write_text("1\n" * 59 + "-2\n", encoding="utf-8")
    assert "line 60: weight '-2' must be" in refused(cli("solve", crowd, *asked))
    path.unlink()
    assert "cannot be read" in refused(cli("solve", crowd, *asked))


def test_solve_keeps_a_cap_or_says_so(cli, crowd):
    """Exit code 1 where no schedule was found that keeps it; the result is shown."""
    budget = ("--kv-budget", 400, "--rounds", 2, "--json")
    free = json.loads(cli("solve", crowd, *budget)[1])
    cap = int(0.97 * free["max_latency"])
    for option in "--max-latency", "--p99-latency":
        code, out, _ = cli("solve", crowd, *budget, option, cap)
        assert code == 0
        found = json.loads(out)
        assert found["over_cap"] == 0
        assert found["max_latency"] <= cap
        assert found["lower_bound"] <= found["total_latency"]
    code, out, err = cli("solve", crowd, *budget, "--max-latency", 71)
    assert code == 1
    assert json.loads(out)["over_cap"] > 0
    assert "the cap on latency is missed by" in err


def test_compare_shows_no_window_for_a_search(cli, crowd):
    """A dash, because no list was placed."""
    code, out, _ = cli("compare", crowd, "--kv-budget", 400, "--methods", "improve")
    assert code == 0
    assert out.splitlines()[-2].split()[-3] == "-"


@pytest.mark.parametrize("command", ["solve", "bound", "compare"])
def test_ctrl_c_is_said_in_one_line(cli, trace, monkeypatch, command):
    """It ended with code 130 and without a word, as this version of typer has it."""

    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"sortedf.cli.{command}.{command}", pressed)
    code, out, err = cli(command, trace, "--kv-budget", 10)
    assert (code, out, err) == (1, "", "sortedf: error: interrupted.\n")


def test_ctrl_c_during_a_search_gives_what_there_is(cli, trace, monkeypatch):
    """The best schedule so far is printed, and that is no failure."""

    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sortedf.improve.improving.make_guide", pressed)
    arguments = ("--kv-budget", 10, "--bound", "fluid", "--json")
    code, out, _ = cli("solve", trace, *arguments)
    assert (code, json.loads(out)["status"]) == (0, "time_limit")
    code, out, err = cli("compare", trace, *arguments, "--methods", "svf,auto,fcfs")
    rows = [row["method"] for row in json.loads(out)["rows"]]
    assert (code, rows) == (0, ["svf", "auto"])
    assert "interrupted; 2 of 3 methods are shown" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "TRACE", "-o", "TRACE"),
        ("solve", "TRACE", "--plot", "x.png", "-o", "x.png"),
        ("solve", "TRACE", "--start", "TRACE", "-o", "LINK"),
        ("bound", "TRACE", "--certificate", "TRACE"),
        ("compare", "TRACE", "--plot", "LINK"),
        ("simulate", "TRACE", "-o", "LINK"),
    ],
)
def test_no_output_takes_the_place_of_an_input(cli, trace, arguments, monkeypatch):
    """`sortedf solve t.csv -o t.csv` wrote the schedule over the trace."""
    monkeypatch.chdir(trace.parent)
    (trace.parent / "link.png").symlink_to(trace)
    names = {"TRACE": "trace.csv", "LINK": "link.png"}
    words = [names.get(word, word) for word in arguments]
    message = refused(cli(*words, "--kv-budget", 10))
    assert "cannot be written: it is an" in message
    assert trace.read_text(encoding="utf-8") == TRACE


def test_generate_refuses_where_it_cannot_write_before_it_draws(cli, monkeypatch):
    """Millions of requests take a while."""
    monkeypatch.setattr("sortedf.cli.generate.generate", None)
    arguments = ("generate", "mix", "--n", 5, "-o", "no/such/mix.csv")
    assert "no/such does not exist" in refused(cli(*arguments))


def test_output_goes_into_a_pipe(trace):
    """As `-o /dev/stdout | cat` does."""
    done = run_module("solve", str(trace), "--kv-budget", "10", "-o", "/dev/stdout")
    assert done.returncode == 0
    assert '"start": [2, 0, 0]' in done.stdout


@pytest.mark.parametrize("command", [("calibrate",), ("rank", "score", "ranker")])
def test_no_output_takes_the_place_of_other_inputs(cli, trace, command):
    """Neither that of a log of steps nor that of prompts."""
    assert "it is an input" in refused(cli(*command, trace, "-o", trace))
    assert trace.read_text(encoding="utf-8") == TRACE


@pytest.mark.parametrize("arguments", [("methods",), ("methods", "--json")])
def test_a_full_disk_is_one_line(arguments):
    """Standard output that takes nothing gave a traceback, or code 120 at the exit."""
    command = [sys.executable, "-m", "sortedf", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == (
        "sortedf: error: standard output: No space left on device.\n"
    )


def test_a_name_that_cannot_be_shown_undoes_no_work(trace):
    """A terminal of ASCII alone ended the command after the schedule was found."""
    path = trace.rename(trace.with_name("é.csv"))
    command = [sys.executable, "-m", "sortedf", "solve", str(path), "--kv-budget", "10"]
    done = subprocess.run(
        command,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"\\xe9.csv: 3 requests" in done.stdout


def test_a_weight_of_thousands_of_digits_is_named_by_its_line(cli, trace, tmp_path):
    """Python refuses to read such a number, with advice on its own settings."""
    path = tmp_path / "weights.txt"
    path.write_text(f"1\n{'9' * 5000}\n1\n", encoding="utf-8")
    asked = ("--kv-budget", 10, "--objective", "weighted-tel", "--weights", path)
    message = refused(cli("solve", trace, *asked))
    assert f"{path}, line 2: weight '9999" in message
    assert len(message) < 400
