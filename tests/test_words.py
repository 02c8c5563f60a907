"""Texts are plain technical English, and names say what a thing is."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("sortedf", "lp", "online", "benchmarks", "proofs_checks", "tests")
PEOPLE = re.compile(
    r"\b(?:(?:no|some|any|every)(?:body|one)|no one|who(?:m)?ever|anew)\b", re.I
)
"""Words for people where a request, a process or a user is meant, and one for again."""

VAGUE = {
    "aside", "chart", "chooser", "course", "door", "made", "stock", "taste", "tell",
    "told",
}  # fmt: skip
"""Names of variables, functions and classes that do not say what they hold."""


def texts() -> list[Path]:
    """Every file of code and documents but this one."""
    pages = [ROOT / "README.md"]
    for folder in FOLDERS:
        for ending in ("py", "md"):
            pages += sorted((ROOT / folder).rglob(f"*.{ending}"))
    return [page for page in pages if page != Path(__file__)]


def test_no_text_speaks_of_unnamed_people():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if PEOPLE.search(line)
    ]
    assert found == []


def test_names_are_not_vague():
    found = []
    for path in texts():
        if path.suffix == ".py":
            source = io.StringIO(path.read_text(encoding="utf-8"))
            found += [
                f"{path.relative_to(ROOT)}:{token.start[0]}: {token.string}"
                for token in tokenize.generate_tokens(source.readline)
                if token.type == tokenize.NAME and token.string.lower() in VAGUE
            ]
    assert found == []


@pytest.mark.parametrize("text", ["nobody waits", "Whoever reads", "is counted anew"])
def test_the_words_are_recognised(text):
    assert PEOPLE.search(text)
