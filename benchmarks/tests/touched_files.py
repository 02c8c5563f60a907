"""Number of files that one change of each kind touches, found by making it.

In a copy of the project one file of the example plug-in is put where the product has
its own of that kind. Tests then report missing parts: the README's tables are written
by their command, and the page on the choice of a method or policy is edited by hand.
The files that differ at the end are those that the change touches.
"""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.registry import ROOT, Row, Settings, Spec, markdown_table

PLUGIN = "sortedf/guide/plugin/prompt_tools"
PAGES = "tests/sortedf/guide/test_pages.py"
WHICH = "sortedf/guide/which.md"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of change.

    Attributes
    ----------
    source : str
        File of the plug-in.
    target : str
        Its path in the product.
    name : str
        Name that it registers.
    before : int, optional
        Files that such a change touched before there were tables of everything.
    """

    source: str
    target: str
    name: str
    before: int | None = None


KINDS = {
    "method": Kind("method.py", "sortedf/methods/short_prompt.py", "short-prompt-list"),
    "group selector": Kind("selector.py", "sortedf/groups/alone.py", "alone", 5),
    "bound": Kind("bound.py", "sortedf/bounds/answers.py", "answers", 7),
    "policy": Kind("policy.py", "online/policies/short_prompt.py", "short-prompt", 6),
    "trace format": Kind(
        "trace_format.py", "sortedf/traces/formats/prompt_log.py", "prompt-log", 3
    ),
}


def run(settings: Settings) -> list[Row]:
    """Make every change, each in a copy of its own."""
    kinds = list(KINDS.items())[-1:] if settings.quick else KINDS.items()
    return [{"kind": name, **touched(kind)} for name, kind in kinds]


def touched(kind: Kind) -> Row:
    """Make one change and do what the tests ask for."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT.parent,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        files = [name for name in listed.stdout.split("\0") if name]
        for name in files:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT.parent / name, copy / name)
        shutil.copy(copy / PLUGIN / kind.source, copy / kind.target)
        _run(copy, "-c", f"import sortedf; {_KNOWN.format(kind.name)}")
        commands = []
        if not _passes(copy, "tables_are_those"):
            _run(copy, "-m", "sortedf.guide.tables", "--write")
            commands.append("python -m sortedf.guide.tables --write")
        if not _passes(copy, "names_everything"):
            page = (copy / WHICH).read_text(encoding="utf-8")
            (copy / WHICH).write_text(f"{page}\n`{kind.name}`: when to take it.\n")
        if not _passes(copy, "tables_are_those or names_everything"):
            raise RuntimeError(f"{kind.target}: the tests ask for more.")
        changed = [
            name
            for name in files
            if not filecmp.cmp(ROOT.parent / name, copy / name, shallow=False)
        ]
    written = [name for name in changed if name == "README.md"]
    by_hand = [kind.target, *(name for name in changed if name not in written)]
    return {
        "before": kind.before, "by_hand": by_hand, "written": written,
        "commands": commands,
    }  # fmt: skip


_KNOWN = (
    "from online.policy import POLICIES; from sortedf.traces.format import FORMATS; "
    "known = [*sortedf.METHODS, *sortedf.BOUNDS, *POLICIES, *FORMATS]; "
    "assert '{}' in known"
)
"""Whether the copy knows a name without any further change."""


def _passes(copy: Path, tests: str) -> bool:
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", PAGES, "-k", tests]
    return _python(copy, *command).returncode == 0


def _run(copy: Path, *arguments: str) -> None:
    done = _python(copy, *arguments)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])


def _python(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def page(rows: list[Row]) -> str:
    """One line for each kind of change."""
    lines = [
        [
            f"a new {row['kind']}",
            "-" if row["before"] is None else str(row["before"]),
            str(len(row["by_hand"])),
            ", ".join(f"`{name}`" for name in row["by_hand"]),
            ", ".join(f"`{name}`" for name in row["written"]) or "-",
        ]
        for row in rows
    ]
    intro = (
        "Files that one change touches, without its own test: before methods, bounds, "
        "policies and formats were found in tables, and now. What a command writes is "
        "in the last column. In a package of its own each of them is one file."
    )
    columns = ["change", "before", "now", "files", "written by a command"]
    return f"{intro}\n\n{markdown_table(columns, lines)}"


SPEC = Spec("Files to touch for each kind of change", run, page)
