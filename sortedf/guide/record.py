"""Records the output of tutorials: `python -m sortedf.guide.record [NAME ...]`.

Used when a better solver changes the figures; review the difference before it is
committed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TUTORIALS = Path(__file__).with_name("tutorials")


def main(names: list[str]) -> None:
    """Run each tutorial in an empty folder and write its output beside it."""
    for name in names or sorted(path.stem for path in TUTORIALS.glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(TUTORIALS / f"{name}.py")]
            done = subprocess.run(
                command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
            )
        (TUTORIALS / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
        print(f"{name}.txt: {len(done.stdout.splitlines())} lines")


if __name__ == "__main__":
    main(sys.argv[1:])
