"""Heavy libraries are loaded by one module, and only when they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
HEAVY = {"torch", "transformers", "safetensors", "sklearn"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_no_import_statement_names_them():
    """`online.ranking.libraries` loads them by name."""
    files = [*(ROOT / "online" / "ranking").glob("*.py")]
    files += [*(ROOT / "sortedf" / "cli").glob("*.py")]
    files += [*(ROOT / "online" / "cli").glob("*.py")]
    assert len(files) > 20
    for path in files:
        assert not HEAVY & set(imported(path)), path


def test_nothing_heavy_is_loaded_at_import():
    """Neither by the package nor by the command line."""
    code = (
        "import sys, online.ranking, online.ranking.training, online.ranking.rivals, "
        "sortedf.cli.main, online.cli.rank; "
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
