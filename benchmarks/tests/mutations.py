"""Small changes to the core code, and how many of them its tests notice.

A change that no test notices is either equivalent (the changed code does the same), and
then `parts/reasons.toml` says why, or a test is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import zlib
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.journal import Journal
from benchmarks.common.registry import ROOT, Row, Settings, Spec, markdown_table
from benchmarks.tests.parts.mutants import Mutant, mutants

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = "benchmarks.tests.parts.mutation_server"
POLICY_TESTS = "tests/online/policies"
PARTS = "online/policies/parts"
REASONS = Path(__file__).parent / "parts" / "reasons.toml"


@dataclass(frozen=True, slots=True)
class Target:
    """Files to change, and the tests that should notice.

    Attributes
    ----------
    sample : int
        Largest number of mutants of a file; of more, a fixed sample.
    tests : tuple of str
        Files or folders, from the root of the project.
    paths : tuple of str
        Patterns, from the root of the project.
    """

    sample: int
    tests: tuple[str, ...]
    paths: tuple[str, ...]

    def files(self) -> list[str]:
        """Return the files that match, in order."""
        root = ROOT.parent
        found = [file for path in self.paths for file in sorted(root.glob(path))]
        return [file.relative_to(root).as_posix() for file in found]

    def tests_digest(self) -> int:
        """Digest of the tests' sources."""
        paths = [ROOT.parent / path for path in self.tests]
        files = [f for p in paths for f in (sorted(p.rglob("*.py")) or [p])]
        return zlib.crc32(b"".join(file.read_bytes() for file in files))


TARGETS = (
    Target(
        50,
        ("tests/sortedf/test_checker.py", "tests/sortedf/test_shared_prefixes.py"),
        ("sortedf/checker.py",),
    ),
    Target(
        60,
        (
            "tests/sortedf/test_placement.py",
            "tests/sortedf/test_shared_prefixes.py",
            "tests/sortedf/methods",
        ),
        ("sortedf/placement.py", "sortedf/kernels.py"),
    ),
    Target(
        50,
        ("tests/sortedf/test_kv_usage.py", "tests/sortedf/test_shared_prefixes.py"),
        ("sortedf/kv_usage.py",),
    ),
    Target(
        50,
        (
            "tests/sortedf/test_certificate.py",
            "tests/sortedf/test_growth_certificate.py",
            "tests/sortedf/test_row_certificate.py",
            "tests/sortedf/test_split_certificate.py",
            "tests/sortedf/test_segments.py",
        ),
        (
            "sortedf/certificate.py",
            "sortedf/growth_certificate.py",
            "sortedf/row_certificate.py",
        ),
    ),
    Target(
        40,
        (
            "tests/sortedf/bounds/test_objective.py",
            "tests/sortedf/bounds/test_table.py",
        ),
        ("sortedf/bounds/objective.py", "sortedf/bounds/table.py"),
    ),
    Target(
        20,
        ("tests/sortedf/bounds/test_proving.py", "tests/sortedf/test_solving.py"),
        ("sortedf/bounds/fluid.py", "sortedf/bounds/proving.py"),
    ),
    *(
        Target(
            20,
            (f"tests/sortedf/bounds/test_{name}.py",),
            (f"sortedf/bounds/{name}.py",),
        )
        for name in ("exhaustive", "machines", "seconds")
    ),
    Target(50, ("tests/lp/test_prices.py",), ("lp/prices.py",)),
    Target(40, ("tests/lp/test_branching.py",), ("lp/branching.py",)),
    Target(40, ("tests/lp/test_growth.py",), ("lp/growth.py",)),
    Target(
        60,
        (
            "tests/online/test_step_engine.py",
            "tests/online/test_prefix_cache.py",
            "tests/online/test_predictors.py",
            "tests/online/test_invariants.py",
            "tests/online/test_simulator.py",
            f"{POLICY_TESTS}/test_quiet_steps.py",
        ),
        ("online/step_engine.py",),
    ),
    Target(
        60,
        (
            "tests/online/test_step_engine.py",
            "tests/online/test_prefix_cache.py",
            "tests/online/executor/test_running.py",
            "tests/online/executor/test_policy_host.py",
        ),
        ("online/step_kernels.py",),
    ),
    Target(
        60,
        (
            "tests/online/test_metrics.py",
            "tests/online/test_prefix_cache.py",
            "tests/online/cli/test_simulate.py",
        ),
        ("online/metrics.py",),
    ),
    Target(
        60,
        ("tests/online/executor/batch/test_journal.py",),
        ("online/executor/batch/journal.py",),
    ),
    Target(
        40,
        (
            f"{POLICY_TESTS}/parts/test_boost_queue.py",
            "tests/online/test_answer_lengths.py",
            f"{POLICY_TESTS}/test_lists.py",
        ),
        (
            f"{PARTS}/boost_queue.py",
            f"{PARTS}/expected_room.py",
            "online/answer_lengths.py",
        ),
    ),
    Target(
        40,
        (
            f"{POLICY_TESTS}/parts/test_lengths.py",
            f"{POLICY_TESTS}/test_queues.py",
            f"{POLICY_TESTS}/test_every_policy.py",
            f"{POLICY_TESTS}/test_lists.py",
        ),
        (
            f"{PARTS}/group_queue.py",
            f"{PARTS}/ranked_queue.py",
            f"{PARTS}/moving_queue.py",
            f"{PARTS}/lengths.py",
        ),
    ),
    Target(
        40,
        (
            f"{POLICY_TESTS}/test_shared_prefixes.py",
            f"{POLICY_TESTS}/parts/test_look_ahead.py",
            f"{POLICY_TESTS}/test_quiet_steps.py",
        ),
        (f"{PARTS}/look_ahead.py", f"{PARTS}/forecast_kernels.py"),
    ),
    Target(
        40,
        (
            f"{POLICY_TESTS}/parts/test_preempting.py",
            f"{POLICY_TESTS}/test_shared_prefixes.py",
            f"{POLICY_TESTS}/test_quiet_steps.py",
        ),
        (f"{PARTS}/preempting.py", f"{PARTS}/preempting_kernels.py"),
    ),
    Target(
        40, (f"{POLICY_TESTS}/parts/test_sorted_rows.py",), (f"{PARTS}/sorted_rows.py",)
    ),
    Target(
        30,
        (
            f"{POLICY_TESTS}/test_uniboost.py",
            f"{POLICY_TESTS}/test_every_policy.py",
            f"{POLICY_TESTS}/test_quiet_steps.py",
        ),
        (
            "online/policies/uniboost.py",
            f"{PARTS}/mem_guard.py",
            f"{PARTS}/boost.py",
            f"{PARTS}/work.py",
            f"{PARTS}/progress.py",
        ),
    ),
    Target(
        8,
        (POLICY_TESTS,),
        (
            "online/policies/[!_u]*.py",
            f"{PARTS}/by_id.py",
            f"{PARTS}/geometric.py",
            f"{PARTS}/listed.py",
            f"{PARTS}/ranks.py",
            f"{PARTS}/responses.py",
        ),
    ),
    Target(
        24,
        ("tests/online/executor/test_vllm_scheduler.py",),
        ("online/executor/vllm_scheduler.py", "online/executor/offered_queue.py"),
    ),
    Target(
        40,
        (
            "tests/online/executor/test_running.py",
            "tests/online/executor/test_policy_host.py",
        ),
        ("online/executor/policy_host.py", "online/executor/running.py"),
    ),
    Target(20, ("tests/online/test_last_decision.py",), ("online/last_decision.py",)),
)


def run(settings: Settings) -> list[Row]:
    """Try the mutants of every file; those with a kept result are not tried again."""
    journal = Journal("mutations", settings)
    targets = TARGETS[2:3] if settings.quick else TARGETS
    rows: list[Row] = []
    failed: list[str] = []
    for target in targets:
        try:
            rows += of_target(target, settings.pick(target.sample, 5), journal)
        except RuntimeError as error:  # the others can go on
            print(f"   {error}", file=sys.stderr, flush=True)
            failed += target.paths
    if failed:
        raise RuntimeError(f"not tried: {', '.join(failed)}.")
    return rows


def of_target(target: Target, sample: int, journal: Journal) -> Iterator[Row]:
    """Rows of the mutants of some files, in the order of their lines."""
    digest = target.tests_digest()
    keys: dict[tuple[str, int], tuple[str, str]] = {}
    possible = {}
    for path in target.files():
        source = (ROOT.parent / path).read_text(encoding="utf-8")
        possible[path] = len(mutants(source))
        for mutant in chosen(source, sample):
            key = _key(path, source, mutant)
            keys[path, mutant.site] = key, f"{key} {digest:08x}"
    unknown: dict[str, list[int]] = {path: [] for path in possible}
    for (path, site), (caught, survived) in keys.items():
        if caught not in journal and survived not in journal:
            unknown[path].append(site)
    for line in serve(target, {path: s for path, s in unknown.items() if s}):
        caught, survived = keys[line["path"], line["site"]]
        key = survived if line["how"] == "survived" else caught
        journal.row(key, partial(dict, line))
    for (path, _), (caught, survived) in keys.items():
        row = journal.row(caught if caught in journal else survived, _missing)
        yield {"file": path, "mutants": possible[path]} | row


def chosen(source: str, sample: int) -> list[Mutant]:
    """Choose mutants by a hash of the change; most stay when the file changes."""
    ranked = sorted(mutants(source), key=lambda one: zlib.crc32(_text(one).encode()))
    return sorted(ranked[:sample], key=lambda mutant: mutant.site)


def _missing() -> Row:
    raise RuntimeError("a mutant was not tried.")


def _text(mutant: Mutant) -> str:
    parts = asdict(mutant)
    names = ("function", "kind", "before", "after")
    return json.dumps([parts[name] for name in names])


def _key(path: str, source: str, mutant: Mutant) -> str:
    """Name a mutant by its file, its number there, its lines, and what it changes."""
    lines = source.splitlines()[mutant.line - 1 : mutant.end_line]
    line = zlib.crc32("\n".join(lines).encode())
    return f"{path} {mutant.site} {line:08x} {_text(mutant)}"


def serve(target: Target, sites: dict[str, list[int]]) -> Iterator[Row]:
    """Run the tests on mutants in a process of their own."""
    if not sites:
        return
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    sources = [(ROOT.parent / path).read_text(encoding="utf-8") for path in sites]
    if any("@kernel" in source for source in sources):
        environment["NUMBA_DISABLE_JIT"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps({"sites": sites, "tests": target.tests}))
        process = subprocess.Popen(
            [sys.executable, "-m", SERVER, str(path)], cwd=ROOT.parent,
            env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        said = []
        with process:
            for text in process.stdout:
                if text.startswith('{"path"'):
                    yield json.loads(text)
                else:
                    said.append(text)
        if process.returncode:
            raise RuntimeError(f"{' '.join(sites)}: {''.join(said)[-2000:]}")


def page(rows: list[Row]) -> str:
    """One line for each file, and every survivor with its reason."""
    reasons = read_reasons()
    tried = [row for row in rows if row["how"] != "not put"]
    lines = [
        _line(name, [row for row in tried if row["file"] == name])
        for name in dict.fromkeys(row["file"] for row in tried)
    ]
    lines.append(_line("together", tried))
    columns = ["file", "possible", "tried", "caught", "share", "equivalent", "open"]
    kinds = Counter(row["kind"] for row in tried)
    caught = Counter(row["kind"] for row in tried if row["how"] != "survived")
    parts = [
        "Each mutant is one small change to a file's syntax tree, tried on the tests "
        "of that file: those that run the changed lines, its own first, twenty seconds "
        "of them, with 30 examples of a property instead of 100. A mutant is caught "
        "if one of them fails or takes several times as long as without the change. "
        "Of files with many possible mutants a fixed sample is tried.",
        markdown_table(columns, lines),
        markdown_table(
            ["kind of change", "tried", "caught"],
            [[kind, str(n), str(caught[kind])] for kind, n in kinds.most_common()],
        ),
        "## Survivors",
    ]
    survivors = [
        [
            f"`{row['file']}`, `{row['function']}`",
            f"{_code(row['before'])} to {_code(row['after'])}",
            reasons.get(_reason_key(row), "open"),
        ]
        for row in tried
        if row["how"] == "survived"
    ]
    parts.append(markdown_table(["where", "change", "reason"], survivors))
    return "\n\n".join(parts)


def _line(name: str, rows: list[Row]) -> list[str]:
    survived = [row for row in rows if row["how"] == "survived"]
    known = read_reasons()
    equivalent = sum(_reason_key(row) in known for row in survived)
    possible = {row["file"]: row["mutants"] for row in rows}
    caught = len(rows) - len(survived)
    return [
        name if name == "together" else f"`{name}`",
        str(sum(possible.values())),
        str(len(rows)),
        str(caught),
        f"{caught / len(rows):.1%}",
        str(equivalent),
        str(len(survived) - equivalent),
    ]


def _code(text: str) -> str:
    short = " ".join(text.split())
    short = short if len(short) <= 90 else f"{short[:87]}..."
    return f"`{short}`".replace("|", "\\|") if short else "nothing"


def read_reasons() -> dict[tuple[str, ...], str]:
    """Read the reasons why survivors are equivalent, by file, function and change."""
    listed = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("survivor", [])
    return {_reason_key(one): one["reason"] for one in listed}


def _reason_key(row: Row) -> tuple[str, ...]:
    change = (" ".join(row[key].split()) for key in ("before", "after"))
    return (row["file"], row["function"], *change)


SPEC = Spec("Small changes to the code, and how many its tests notice", run, page)
