"""Small changes to the code that counts, and how many of them its tests notice.

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

SAMPLE = 50
"""Mutants of a file at most; of more, a fixed sample."""

REASONS = Path(__file__).parent / "parts" / "reasons.toml"
SERVER = "benchmarks.tests.parts.mutation_server"
POLICIES = ("tests/online/policies",)


@dataclass(frozen=True, slots=True)
class Target:
    """A file to change, and the tests that should notice.

    Attributes
    ----------
    path : str
        From the root of the project.
    tests : tuple of str
        Files or folders; the file's own test where there is nothing else.
    sample : int
    """

    path: str
    tests: tuple[str, ...] = ()
    sample: int = SAMPLE

    @property
    def source(self) -> str:
        """The code."""
        return (ROOT.parent / self.path).read_text(encoding="utf-8")

    def test_paths(self) -> tuple[str, ...]:
        """What is run, from the root of the project."""
        path = Path(self.path)
        return self.tests or (f"tests/{path.parent}/test_{path.stem}.py",)

    def tests_digest(self) -> int:
        """A number that changes when a test does."""
        paths = [ROOT.parent / path for path in self.test_paths()]
        files = [f for p in paths for f in (sorted(p.rglob("*.py")) or [p])]
        return zlib.crc32(b"".join(file.read_bytes() for file in files))

    def chosen(self, sample: int) -> list[Mutant]:
        """Choose mutants by what they are, so that most stay when the file changes."""
        every = mutants(self.source)
        ranked = sorted(every, key=lambda mutant: zlib.crc32(_text(mutant).encode()))
        return sorted(ranked[:sample], key=lambda mutant: mutant.site)


TARGETS = (
    Target("sortedf/checker.py"),
    Target("sortedf/placement.py"),
    Target("sortedf/kernels.py", ("tests/sortedf/test_placement.py",)),
    Target("sortedf/kv_usage.py"),
    Target("sortedf/certificate.py"),
    Target("sortedf/growth_certificate.py", ("tests/sortedf/test_certificate.py",)),
    Target("sortedf/row_certificate.py", ("tests/sortedf/test_certificate.py",)),
    Target("lp/prices.py"),
    Target("lp/branching.py"),
    Target("lp/growth.py"),
    Target("online/step_engine.py"),
    Target("online/step_kernels.py", ("tests/online/test_step_engine.py",)),
    Target("online/metrics.py"),
    Target("online/executor/batch/journal.py"),
)


def run(settings: Settings) -> list[Row]:
    """Try the mutants of every file; those that are known are not tried again."""
    journal = Journal("mutations", settings)
    targets = TARGETS[3:4] if settings.quick else TARGETS
    rows: list[Row] = []
    failed = []
    for target in targets:
        try:
            rows += of_file(target, settings.pick(target.sample, 5), journal)
        except RuntimeError as error:  # the others can go on
            print(f"   {error}", file=sys.stderr, flush=True)
            failed.append(target.path)
    if failed:
        raise RuntimeError(f"not tried: {', '.join(failed)}.")
    return rows


def of_file(target: Target, sample: int, journal: Journal) -> Iterator[Row]:
    """Rows of one file's mutants, in the order of its lines."""
    where = {"file": target.path, "mutants": len(mutants(target.source))}
    keys = {mutant.site: _keys(target, mutant) for mutant in target.chosen(sample)}
    unknown = [
        site
        for site, (caught, survived) in keys.items()
        if caught not in journal and survived not in journal
    ]
    for line in serve(target, unknown) if unknown else ():
        caught, survived = keys[line["site"]]
        key = survived if line["how"] == "survived" else caught
        journal.row(key, partial(dict, where | line))
    for caught, survived in keys.values():
        key = caught if caught in journal else survived
        yield where | journal.row(key, _missing)


def _missing() -> Row:
    raise RuntimeError("a mutant was not tried.")


def _text(mutant: Mutant) -> str:
    parts = asdict(mutant)
    names = ("function", "kind", "before", "after")
    return json.dumps([parts[name] for name in names])


def _keys(target: Target, mutant: Mutant) -> tuple[str, str]:
    """Keys of a mutant that was caught, and of one that survived these tests."""
    lines = target.source.splitlines()[mutant.line - 1 : mutant.end_line]
    line = zlib.crc32("\n".join(lines).encode())
    caught = f"{target.path} {mutant.site} {line:08x} {_text(mutant)}"
    return caught, f"{caught} {target.tests_digest():08x}"


def serve(target: Target, sites: list[int]) -> Iterator[Row]:
    """Run the tests on mutants in a process of their own."""
    job = {"path": target.path, "sites": sites, "tests": target.test_paths()}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if "@kernel" in target.source:
        environment["NUMBA_DISABLE_JIT"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, "-m", SERVER, str(path)]
        process = subprocess.Popen(
            command, cwd=ROOT.parent, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        said = []
        with process:
            for text in process.stdout:
                if text.startswith("{"):
                    line = json.loads(text)
                    if "site" in line:
                        yield line
                else:
                    said.append(text)
            assert process.stderr is not None
            said.append(process.stderr.read())
        if process.returncode:
            raise RuntimeError(f"{target.path}: {''.join(said)[-2000:]}")


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
        "Each mutant is one small change to a file's syntax tree: what it is tried on "
        "are the tests of that file alone, those that run the changed lines. A mutant "
        "is caught if one of them fails or takes several times as long as without the "
        "change. Of files with many possible mutants a fixed sample is tried.",
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
    """Why survivors are equivalent, by file, function, and the change."""
    listed = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("survivor", [])
    return {_reason_key(one): one["reason"] for one in listed}


def _reason_key(row: Row) -> tuple[str, ...]:
    return (row["file"], row["function"], row["before"], row["after"])


SPEC = Spec("Small changes to the code, and how many its tests notice", run, page)
