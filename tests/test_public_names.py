"""Public names of the product are used by it, exported, or documented.

A function that only tests call is removed, or moved to the tests. Fields of classes are
not looked at, nor what a class inherits from another package prescribes.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.test_layers import PRODUCT, ROOT, module_name, sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

REFERENCE = ROOT / "sortedf" / "guide" / "reference.md"


def definitions(body: list[ast.stmt]) -> Iterator[Definition | ast.Name]:
    """Public functions, classes and constants of a module, and functions of classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.startswith("_"):
                continue
            yield node
            if isinstance(node, ast.ClassDef) and not is_foreign(node):
                yield from definitions([n for n in node.body if is_function(n)])
        elif isinstance(node, ast.Assign):
            yield from (name for name in node.targets if isinstance(name, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target


def is_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def is_foreign(node: ast.ClassDef) -> bool:
    """Whether a class has a base that the product does not define."""
    return any(name_of(base) not in OUR_CLASSES for base in node.bases)


def name_of(node: ast.expr) -> str:
    return re.split(r"[.\[]", ast.unparse(node).partition("[")[0])[-1]


def classes() -> Iterator[str]:
    for folder in PRODUCT:
        for path in sources(folder):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield node.name


OUR_CLASSES = {*classes(), "Protocol", "ABC", "object"}


def words_used(path: Path) -> Iterator[str]:
    """Names and words of short strings in a file, without those that it defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name) if path.name == "__init__.py":
                yield name
            case ast.Constant(value=str(text)) if len(text) < 60:
                yield from re.findall(r"\w+", text)


def documented() -> set[str]:
    """Words of the README and the guide."""
    guide = ROOT / "sortedf" / "guide"
    pages = [ROOT / "README.md", *guide.rglob("*.md"), *guide.rglob("*.py")]
    return {
        word
        for page in pages
        if page.name != "conf.py"
        for word in re.findall(r"\w+", page.read_text(encoding="utf-8"))
    }


def test_public_names_are_used_exported_or_documented():
    """Modules of the reference are documented by it."""
    files = [path for folder in PRODUCT for path in sources(folder)]
    known = documented()
    for path in files:
        known.update(words_used(path))
    in_reference = set(re.findall(r"^   ([\w.]+)$", REFERENCE.read_text(), re.M))
    unused = [
        f"{module_name(path)}.{name}"
        for path in files
        if not in_reference.intersection(above(module_name(path)))
        for name in public_names(path)
        if name not in known
    ]
    assert unused == []


def above(module: str) -> set[str]:
    """A module and the packages that it is in, but for the top one."""
    parts = module.split(".")
    return {".".join(parts[:k]) for k in range(2, len(parts) + 1)}


def public_names(path: Path) -> list[str]:
    """Names that a module defines, without those that a decorator enters somewhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.id if isinstance(node, ast.Name) else node.name
        for node in definitions(tree.body)
        if isinstance(node, ast.Name)
        or not any("register" in ast.unparse(d) for d in node.decorator_list)
    ]
