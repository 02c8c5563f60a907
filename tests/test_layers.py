"""The import direction: sortedf <- lp <- online, no circles, nothing imports the rest.

Imports inside functions and those for the type checker count like all others.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "sortedf": {"sortedf"},
    "lp": {"sortedf", "lp"},
    "online": {"sortedf", "lp", "online"},
    # Documents and their scripts, which are not installed.
    "sortedf/guide": {"sortedf", "lp", "online"},
    "benchmarks": {"sortedf", "lp", "online", "benchmarks", "tests"},  # slow twins
    "proofs_checks": {"sortedf", "lp", "online", "proofs_checks", "tests"},
}
OURS = {"sortedf", "lp", "online", "benchmarks", "proofs_checks", "tests"}
PRODUCT = ("sortedf", "lp", "online")


def sources(folder: str) -> list[Path]:
    """Files of a folder, without those of a folder in it that has a rule of its own."""
    inner = {ROOT / name for name in ALLOWED if name.startswith(f"{folder}/")}
    files = [
        path
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not inner.intersection(path.parents)
    ]
    assert files
    return files


def module_name(path: Path) -> str:
    """Name that a file is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[str]:
    """Names that a file imports, modules and what is taken from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_imports_go_one_way(folder):
    """Each package imports only what is to its left."""
    for path in sources(folder):
        packages = {name.partition(".")[0] for name in imported(path)}
        wrong = (packages & OURS) - ALLOWED[folder]
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_no_files_import_each_other_in_a_circle():
    """Each file can be read, tested and replaced after those that it imports."""
    files = {module_name(path): path for name in PRODUCT for path in sources(name)}
    graph = nx.DiGraph()
    for module, path in files.items():
        for name in imported(path):
            used = name if name in files else name.rpartition(".")[0]
            if used in files and used != module:
                graph.add_edge(module, used)
    assert graph.number_of_edges() > 500
    circles = nx.strongly_connected_components(graph)
    assert [sorted(circle) for circle in circles if len(circle) > 1] == []


def test_heavy_libraries_are_imported_in_one_place_each():
    """matplotlib, pyarrow and tokenizers are each imported in one module."""
    for heavy in ("matplotlib", "pyarrow", "tokenizers"):
        doors = [
            path
            for path in sources("sortedf")
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
