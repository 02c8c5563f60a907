"""The papers' headline numbers beside ours, looked up in the other benchmarks' rows.

Measures nothing itself. Figures whose benchmark has not run yet are marked as missing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.common.journal import read_kept
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.papers.parts.claims import HEADLINES, Headline

if TYPE_CHECKING:
    from pathlib import Path

MISSING = "not measured"
SOURCES = {
    "Sorted-F": "https://arxiv.org/abs/2508.06133",
    "SVF": "https://arxiv.org/abs/2606.22327",
    "MC-SF": "https://arxiv.org/abs/2502.07115",
    "A-min": "https://arxiv.org/abs/2508.14544",
    "PARS": "https://arxiv.org/abs/2510.03243",
    "UniBoost": "https://arxiv.org/abs/2606.18431",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, as it is kept."""

    paper: str
    what: str
    theirs: str
    ours: str
    same: str
    benchmark: str


def run(settings: Settings) -> list[Row]:
    """Look every headline up in the rows kept beside the page."""
    known: dict[str, list[Row]] = {}
    lines = []
    for headline in HEADLINES:
        name = headline.benchmark
        if name not in known:
            known[name] = read_rows(settings.results / f"{name}.jsonl")
        lines.append(asdict(_line(headline, known[name])))
    return lines


def read_rows(path: Path) -> list[Row]:
    """Rows of a benchmark without its first line, which describes the run."""
    return read_kept(path)[1] if path.is_file() else []


def _line(headline: Headline, rows: list[Row]) -> Line:
    found = headline.look(rows) if rows else None
    ours = MISSING if found is None else found.text
    same = "-" if found is None else found.same
    return Line(
        headline.paper, headline.what, headline.theirs, ours, same, headline.benchmark
    )


def page(rows: list[Row]) -> str:
    """Lay out one table, and below it for each paper why figures differ."""
    table = [
        [
            row["paper"],
            row["what"],
            row["theirs"],
            row["ours"],
            row["same"],
            f"`{row['benchmark']}`",
        ]
        for row in rows
    ]
    columns = ["paper", "what", "theirs", "ours", "the same", "from"]
    parts = [
        "What each paper reports first, and what came out here. The last column is the "
        "benchmark whose raw rows the figure is looked up in: `python -m benchmarks` "
        "with that name gives them. We worked from summaries of the papers and from "
        "their abstracts; their data are not published with the exception of public "
        "data sets, so requests are never the very same.",
        markdown_table(columns, table),
    ]
    for paper, source in SOURCES.items():
        parts.append(f"## Why: {paper} ([paper]({source}))")
        parts.append(
            "\n".join(
                f"- *{headline.what}*: {headline.why}"
                for headline in HEADLINES
                if headline.paper == paper
            )
        )
    missing = sorted({row["benchmark"] for row in rows if row["ours"] == MISSING})
    if missing:
        named = ", ".join(f"`{name}`" for name in missing)
        parts.append(f"Not run yet, or without the rows that are asked for: {named}.")
    return "\n\n".join(parts)


SPEC = Spec(
    "The papers' headline numbers, and ours",
    run,
    page,
    reads=tuple({headline.benchmark: None for headline in HEADLINES}),
)
