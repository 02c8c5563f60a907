"""Writes the README's tables: `python -m sortedf.guide.tables --write`.

Methods, bounds, policies and trace formats are described where they are registered. The
README repeats this between two comments, `<!-- table: NAME -->` and another at its end.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from online.policy import POLICIES
from sortedf import BOUNDS, METHODS
from sortedf.traces.format import FORMATS

README = Path(__file__).parents[2] / "README.md"

UPDATE = "python -m sortedf.guide.tables --write"


def methods() -> list[tuple[str, ...]]:
    """Every method with its guarantee and cost."""
    return [
        ("method", "what it does", "guarantee", "cost"),
        *((name, m.about, m.guarantee, m.cost) for name, m in METHODS.items()),
    ]


def bounds() -> list[tuple[str, ...]]:
    """Every bound with its cost."""
    return [
        ("bound", "what it is", "cost", "certificate"),
        *(
            (name, b.about, b.cost, "yes" if b.certified else "no")
            for name, b in BOUNDS.items()
        ),
    ]


def policies() -> list[tuple[str, ...]]:
    """Every policy for requests that arrive over time."""
    return [
        ("policy", "what it does", "has to know"),
        *(
            (name, kind.about, kind.knows)
            for name, kind in POLICIES.items()
            if not kind.needs_plan
        ),
    ]


def formats() -> list[tuple[str, ...]]:
    """Every trace format with the columns or keys that identify it."""
    return [
        ("format", "what has it", "columns or keys"),
        *((name, known.about, known.columns) for name, known in FORMATS.items()),
    ]


TABLES = {
    "methods": methods,
    "bounds": bounds,
    "policies": policies,
    "trace formats": formats,
}


def updated(page: str) -> str:
    """Return a page with its tables updated.

    Raises
    ------
    ValueError
        If the page does not have each table once.
    """
    for name, rows in TABLES.items():
        start, end = f"<!-- table: {name} -->", "<!-- end of table -->"
        pattern = f"{re.escape(start)}.*?{re.escape(end)}"
        text = f"{start}\n\n{_markdown(rows())}\n\n{end}".replace("\\", r"\\")
        page, found = re.subn(pattern, text, page, flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"the page has {found} places for the table {name!r}.")
    return page


def _markdown(rows: list[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = [head, ("---",) * len(head)]
    lines += [(f"`{name}`", *map(_linked, words)) for name, *words in body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _linked(words: str) -> str:
    """Make papers links, which the page defines."""
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[\1]", words)


def main(arguments: list[str]) -> int:
    """Write the tables, or check whether they are up to date."""
    page = README.read_text(encoding="utf-8")
    wanted = updated(page)
    if arguments == ["--write"]:
        README.write_text(wanted, encoding="utf-8")
    elif arguments:
        print(f"usage: {UPDATE}", file=sys.stderr)
        return 2
    elif wanted != page:
        print(f"the README's tables are old: {UPDATE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
