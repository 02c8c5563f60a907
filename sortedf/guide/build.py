"""Builds the documents: `python -m sortedf.guide.build build/docs`, or `make docs`.

Pages are gathered in one folder (the guide's own, the README, the list of claims, the
benchmarks' pages), with the links between them rewritten for that folder. Sphinx then
makes HTML of them, and a reference of the docstrings. A warning or a broken internal
link is an error.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

GUIDE = Path(__file__).parent
ROOT = GUIDE.parents[1]
OUTSIDE = {
    "readme.md": ROOT / "README.md",
    "claims.md": ROOT / "proofs_checks" / "README.md",
}
"""Pages outside the guide."""

MOVED = {
    "../../README.md": "readme.md",
    "../../proofs_checks/README.md": "claims.md",
    "../../benchmarks/results/": "results/",
    "benchmarks/results/": "results/",
    "proofs_checks/README.md": "claims.md",
    "sortedf/guide/": "",
}
"""Positions of link targets in the gathered folder."""


def main(target: Path) -> int:
    """Gather, then build; return Sphinx's exit code."""
    from sphinx.cmd.build import build_main

    source = target / "source"
    shutil.rmtree(source, ignore_errors=True)
    gather(source)
    html = target / "html"
    arguments = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(GUIDE)]
    code: int = build_main([*arguments, str(source), str(html)])
    if code == 0:
        print(f"{html / 'index.html'}")
    return code


def gather(source: Path) -> None:
    """Write every page into one folder."""
    (source / "results").mkdir(parents=True)
    for folder in ("tutorials", "plugin"):
        shutil.copytree(GUIDE / folder, source / folder)
    for page in sorted(GUIDE.glob("*.md")):
        write(source / page.name, page.read_text(encoding="utf-8"))
    for picture in sorted(GUIDE.glob("*.png")):
        shutil.copy(picture, source)
    for name, path in OUTSIDE.items():
        write(source / name, path.read_text(encoding="utf-8"))
    results = ROOT / "benchmarks" / "results"
    for page in sorted(results.glob("*.md")):
        write(source / "results" / page.name, page.read_text(encoding="utf-8"))
    for picture in sorted(results.glob("*.png")):
        shutil.copy(picture, source / "results")


def write(path: Path, text: str) -> None:
    """Write a page with its links rewritten."""
    for there, here in MOVED.items():
        text = text.replace(f"]({there}", f"]({here}")
    # Sphinx knows no language called console with a prompt only on some lines.
    path.write_text(re.sub(r"```console\n", "```text\n", text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
