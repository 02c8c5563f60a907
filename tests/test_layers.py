"""The import direction: sortedf <- lp <- online, and nothing imports the others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "sortedf": {"sortedf"},
    "sortedf/cli": {"sortedf", "lp", "online"},
    "sortedf/guide": {"sortedf", "lp", "online"},
    "lp": {"sortedf", "lp"},
    "online": {"sortedf", "lp", "online"},
    "benchmarks": {"sortedf", "lp", "online", "benchmarks", "tests"},  # slow twins
    "proofs_checks": {"sortedf", "lp", "online", "proofs_checks", "tests"},
}
OURS = {"sortedf", "lp", "online", "benchmarks", "proofs_checks", "tests"}


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports, lazily or not."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_imports_go_one_way(folder):
    """Each package imports only what is to its left."""
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        if folder == "sortedf" and path.relative_to(ROOT).parts[1] in ("cli", "guide"):
            continue
        wrong = (imported(path) & OURS) - ALLOWED[folder]
        if path == ROOT / "sortedf" / "__main__.py":
            wrong -= {"sortedf"}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_heavy_libraries_are_imported_in_one_place_each():
    """matplotlib, pyarrow and tokenizers each have one door."""
    for heavy in ("matplotlib", "pyarrow", "tokenizers"):
        doors = [
            path
            for path in sorted((ROOT / "sortedf").rglob("*.py"))
            if ROOT / "sortedf" / "guide" not in path.parents  # scripts
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if _is_import_at_run_time(node, heavy, path)
        ]
        assert len(set(doors)) == 1, f"{heavy} is imported in {doors}"


def _is_import_at_run_time(node: ast.AST, name: str, path: Path) -> bool:
    if isinstance(node, ast.Import):
        found = any(alias.name.partition(".")[0] == name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        found = (node.module or "").partition(".")[0] == name
    else:
        return False
    return found and not _under_type_checking(node, path)


def _under_type_checking(node: ast.AST, path: Path) -> bool:
    for guard in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING":
            last = guard.body[-1].end_lineno or guard.lineno
            if guard.lineno <= node.lineno <= last:  # type: ignore[attr-defined]
                return True
    return False
