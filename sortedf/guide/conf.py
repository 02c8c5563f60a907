"""Sphinx's settings; see build.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sortedf

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "sortedf"
author = "The sortedf developers"
version = release = sortedf.__version__
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Docstrings have code between single backticks, and numpydoc's sections.
default_role = "code"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autosummary_generate = True
# Absolute: pages are gathered elsewhere.
templates_path = [str(Path(__file__).parent / "templates")]
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
# Types are named as in the code; two modules each have an Outcome and a num_steps.
suppress_warnings = ["ref.python"]

FIRST_PAGE = "reference/sortedf"

html_theme = "alabaster"
html_theme_options = {
    "description": "Schedules for LLM serving under a KV-cache budget.",
    "fixed_sidebar": True,
    "page_width": "1100px",
}
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "friendly"


def setup(app: Sphinx) -> None:
    """Keep formulas in docstrings unchanged, before napoleon reads them."""
    app.connect("autodoc-process-docstring", _keep_formulas, priority=100)
    app.connect("autodoc-skip-member", _skip_what_has_a_page)


def _skip_what_has_a_page(
    app: Sphinx, what: str, name: str, of: object, skip: bool, options: object
) -> bool | None:
    """Leave out members of a module that are on the page of `sortedf` already."""
    here = app.env.current_document.docname
    return True if getattr(sortedf, name, None) is of and here != FIRST_PAGE else None


def _keep_formulas(
    app: Sphinx, what: str, name: str, of: object, options: object, lines: list[str]
) -> None:
    """Mark lines indented by four after a blank line as a literal block."""
    marked: list[str] = []
    last = ""
    for line in lines:
        starts = marked and not marked[-1].strip() and line.startswith("    ")
        if starts and last and not last.startswith(" "):
            marked += ["::", ""]
        marked.append(line)
        last = line if line.strip() else last
    lines[:] = marked
