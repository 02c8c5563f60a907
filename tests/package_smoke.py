"""Try the built wheel as a stranger would: `python -m tests.package_smoke dist`.

A clean environment, the wheel with plots, and then, away from the sources: the version,
a trace, a schedule with its picture, the check of it, and a simulation. Uses nothing
but the standard library; pip takes what it needs from where it is configured to.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path


def main(dist: Path) -> None:
    """Install the newest wheel in a folder and use it."""
    wheel = max(dist.glob("sortedf-*.whl"), key=lambda path: path.stat().st_mtime)
    wheel = wheel.resolve()
    with tempfile.TemporaryDirectory(prefix="sortedf-smoke-") as name:
        folder = Path(name)
        began = time.monotonic()
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [binaries / "python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"{wheel}[plot]"], check=True)
        say(f"installed {wheel.name} in {time.monotonic() - began:.0f} s")
        use(binaries / "sortedf", wheel, folder)
        import_all(binaries / "python", folder)


def use(sortedf: Path, wheel: Path, folder: Path) -> None:
    """Go through the command line."""
    said = run(sortedf, "--version", cwd=folder).split()[-1]
    built = wheel.name.split("-")[1]
    if said != built:
        raise SystemExit(f"the wheel is of {built}, but what it installs says {said}")
    mix = ["generate", "mix", "--n", "50", "--seed", "1", "-o", "t.csv"]
    run(sortedf, *mix, cwd=folder)
    solve = ["solve", "t.csv", "--kv-budget", "16492", "--json"]
    solve += ["-o", "s.json", "--plot", "s.png"]
    found = json.loads(run(sortedf, *solve, cwd=folder))
    if not found["total_latency"] >= found["lower_bound"] > 0:
        raise SystemExit(f"no proven schedule: {found}")
    check = ["check", "t.csv", "s.json", "--kv-budget", "16492", "--json"]
    checked = run(sortedf, *check, cwd=folder)
    if json.loads(checked)["total_latency"] != found["total_latency"]:
        raise SystemExit(f"solved {found}, but checked {checked}")
    if not (folder / "s.png").read_bytes().startswith(b"\x89PNG"):
        raise SystemExit("the picture is no PNG")
    simulate = ["simulate", "t.csv", "--kv-budget", "16492", "--policy", "fcfs,svf"]
    run(sortedf, *simulate, "--load", "1", "--plot", "load.png", cwd=folder)
    say(f"solved, checked, drawn and simulated: gap {found['gap']:.1%}")


def import_all(python: Path, folder: Path) -> None:
    """Import the packages from where they are installed, bounds of `lp` included."""
    code = (
        "import sortedf, lp, online.simulator\n"
        "from importlib.util import find_spec\n"
        "assert 'site-packages' in sortedf.__file__, sortedf.__file__\n"
        "for name in ('tests', 'benchmarks', 'proofs_checks', 'sortedf.guide'):\n"
        "    assert find_spec(name) is None, name\n"
        "small = sortedf.Instance([5, 6, 1], [3, 2, 1], 10)\n"
        "assert sortedf.solve(small, bound='dual').status == 'optimal'\n"
    )
    run(python, "-c", code, cwd=folder)
    say("imported, and nothing else came along")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command; return what it printed, or stop with what it said."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr or done.stdout
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{said}")
    return done.stdout


def say(text: str) -> None:
    """Report progress."""
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
