"""The documents build without a warning, and hold a page for everything."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("sphinx") is None or find_spec("myst_parser") is None,
        reason="Sphinx is not installed: pip install 'sortedf[docs]'",
    ),
]


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """Build as `make docs` does; warnings are errors there."""
    target = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "sortedf.guide.build", target],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return target / "html"


def test_links_between_pages_hold(html):
    """Every link inside leads to a file, and to an anchor that it has."""
    pages = {path: path.read_text(encoding="utf-8") for path in html.rglob("*.html")}
    anchors = {
        path: set(re.findall(r'id="([^"]+)"', text)) for path, text in pages.items()
    }
    links = [(path, link) for path, text in pages.items() for link in linked(text)]
    assert len(pages) > 15
    assert len(links) > 500
    for path, link in links:
        parts = urlsplit(link)
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert target.is_file(), f"{path.name}: {link}"
        if parts.fragment and target in anchors:
            assert unquote(parts.fragment) in anchors[target], f"{path.name}: {link}"


def linked(text):
    """Targets of the links that stay inside."""
    links = re.findall(r'<a [^>]*href="([^"]+)"', text)
    return [link for link in links if not urlsplit(link).scheme]


def test_the_reference_has_the_docstrings(html):
    """Signatures and words of what is imported most."""
    text = (html / "reference" / "sortedf.html").read_text(encoding="utf-8")
    for name in ("solve", "Instance", "check", "bound", "OversizeError"):
        assert f'id="sortedf.{name}"' in text
    assert "Schedule a backlog or a stream of requests" in text


def test_tutorials_are_shown_with_their_output(html):
    text = (html / "tutorials.html").read_text(encoding="utf-8")
    assert "certificate checked" in text
