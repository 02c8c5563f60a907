"""The pages say what is there: names, links and commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from online.policy import POLICIES
from proofs_checks import draw, search
from sortedf.bounds import BOUNDS
from sortedf.cli.main import exit_code
from sortedf.guide import tables
from sortedf.methods import METHODS

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "sortedf" / "guide"
PAGES = [ROOT / "README.md", ROOT / "proofs_checks" / "README.md", *GUIDE.glob("*.md")]
INNER = {"improve", "best-list", "exact"} | {
    name for name, policy in POLICIES.items() if policy.needs_plan
}
"""Made by other commands, or parts of what is named."""


def named(pages):
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


def links(text: str) -> list[str]:
    """Targets of all links: inline ones, and those that are defined once."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    inline = re.findall(r"\]\(([^)]*)\)", prose)
    return inline + re.findall(r"^\[[^]]+\]: (.*)$", prose, flags=re.MULTILINE)


@pytest.mark.parametrize("page", named(PAGES))
def test_links_lead_somewhere(page):
    """Inside, to a file that is there; outside, to something that can be asked for."""
    for link in links(page.read_text(encoding="utf-8")):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), link
            assert not re.search(r"\s|[.,;]$", link), link
        elif parts.path:
            assert (page.parent / parts.path).exists(), f"{page}: {link}"


@pytest.mark.slow
@pytest.mark.parametrize("page", named(sorted(GUIDE.glob("*.md"))))
def test_commands_run(page, tmp_path, monkeypatch, capsys):
    """Each shell block of a page, one line after the other."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            name, *arguments = shlex.split(line)
            assert name == "sortedf"
            assert exit_code(arguments) == 0, capsys.readouterr().err


def test_the_choice_names_everything():
    """Who adds a method, a bound or a policy says when to take it."""
    page = (GUIDE / "which.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]*)`", page))))
    for table in (METHODS, BOUNDS, POLICIES):
        assert set(table) - words <= INNER


@pytest.mark.parametrize("arguments", [[], ["climbing"]])
def test_searches_of_the_claims_say_what_there_is(arguments, capsys):
    """Where none is named, or one that is not there."""
    with pytest.raises(SystemExit) as caught:
        search.main(arguments)
    assert caught.value.code == 2
    assert "climb" in capsys.readouterr().err


def test_pictures_of_the_claims_are_drawn(tmp_path, capsys):
    """Into a folder that is not there yet."""
    pytest.importorskip("matplotlib")
    draw.main([str(tmp_path / "a" / "b")])
    drawn = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(drawn) == sorted((tmp_path / "a" / "b").iterdir())
    assert len(drawn) == 3


def test_readme_tables_are_those_of_the_code():
    """Each method, bound, policy and format in the words of its entry."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert page == tables.updated(page), f"update it: {tables.UPDATE}"


def test_a_page_without_a_table_is_refused():
    with pytest.raises(ValueError, match="the page has 0 places for the table"):
        tables.updated("# A page")


def test_every_page_of_results_has_its_place():
    """Once, so that a new benchmark is put where a reader looks for it."""
    page = (GUIDE / "results.md").read_text(encoding="utf-8")
    listed = re.findall(r"^results/(.*)$", page, flags=re.MULTILINE)
    kept = (ROOT / "benchmarks" / "results").glob("*.md")
    assert sorted(listed) == sorted(path.stem for path in kept)


def test_the_picture_shows_what_the_readme_says():
    """Its figures stand in the file; `sortedf.guide.picture` draws it again."""
    image = pytest.importorskip("PIL.Image", reason="no matplotlib, no pillow")
    shown = image.open(GUIDE / "first.png").text["Description"].split("; ")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    block = page[page.index("$ sortedf compare mix.csv") :].partition("```")[0]
    said = re.findall(r"^  ([a-z-]+) +([\d,]+\.\d) ", block, flags=re.MULTILINE)
    bound = re.findall(r"below ([\d,]+\.\d)", block)
    assert len(said) == 5
    expected = [*(" ".join(row) for row in said), f"lower bound {bound[0]}"]
    assert sorted(shown) == sorted(expected)


def test_readme_shows_lines_of_the_quality_page():
    """Its table of gaps is what the kept page says, not what it once said."""
    kept = (ROOT / "benchmarks" / "results" / "quality.md").read_text(encoding="utf-8")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    header = "| TEL over the proven bound |"
    table = page.partition(header)[2].partition("\n\n")[0]
    lines = f"{header}{table}".splitlines()
    assert len(lines) > 5
    assert set(lines) <= set(kept.splitlines())
