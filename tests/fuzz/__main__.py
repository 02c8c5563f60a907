"""Hostile inputs for every reader: `python -m tests.fuzz --count 10000 --seed 0`.

Each input is read in a process of its own, which is told from its parent by 2 GiB more
of memory and ten seconds of computing at most. Looked for are tracebacks, messages of
more than a line, wrong successes (see `tests.fuzz.readers`), and files that appear or
change beside the named outputs. What was tried is kept in a file, by number, so that a
run that was stopped goes on; the seed and the number give the same input again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

from sortedf.errors import SortedfError
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import READERS, TRACE

MEMORY = 2 << 30
"""Bytes that an input may take."""

SECONDS = 10
"""Seconds of computing that it may take."""

STDOUT, STDERR = ".stdout", ".stderr"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(READERS))
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first input"
    )
    parser.add_argument("--journal", type=Path, help="what was tried; goes on from it")
    options = parser.parse_args(arguments)
    done = _tried(options.journal)
    found = run(options.seed, range(options.first, options.count), options.only, done,
                options.journal)  # fmt: skip
    for result, times in sorted(Counter(found.values()).items()):
        print(f"{times:7,}  {result}")
    return int(any(not is_fine(result) for result in found.values()))


def run(
    seed: int,
    numbers: range,
    only: str | None = None,
    done: dict[int, str] | None = None,
    journal: Path | None = None,
) -> dict[int, str]:
    """Try the inputs of these numbers; return what became of each."""
    found = dict(done or {})
    with tempfile.TemporaryDirectory() as scratch:
        good = {name: _good(name, Path(scratch)) for name in READERS}
        for number in numbers:
            if number in found:
                continue
            name, content = hostile(seed, number, good, only)
            begin = time.monotonic()
            found[number] = attempt(name, content, Path(scratch))
            if journal is not None:
                line = {"number": number, "reader": name, "result": found[number],
                        "s": round(time.monotonic() - begin, 1)}  # fmt: skip
                with journal.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            if not is_fine(found[number]):
                print(
                    f"seed {seed}, number {number}, {name}: {found[number]}", flush=True
                )
    return found


def hostile(
    seed: int, number: int, good: dict[str, list[bytes]], only: str | None
) -> tuple[str, bytes]:
    """Return the reader and the input of a number."""
    draw = random.Random(seed * 1_000_003 + number)
    name = only or draw.choice(sorted(READERS))
    return name, mutated(draw.choice(good[name]), draw)


def attempt(name: str, content: bytes, scratch: Path) -> str:
    """Read an input in a process of its own; say what became of it."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    reader = READERS[name]
    (folder / "trace.csv").write_text(TRACE)
    (folder / reader.name).write_bytes(content)
    child = os.fork()
    if child == 0:
        _child(name, folder)
    _, status, usage = os.wait4(child, 0)
    try:
        return _judged(name, folder, content, status, usage.ru_maxrss * 1024)
    finally:
        shutil.rmtree(folder)


def _child(name: str, folder: Path) -> None:
    """Read the input, and end this process with what became of it."""
    code = 99
    try:
        os.chdir(folder)
        os.environ["FUZZ_STDOUT"] = str(folder / STDOUT)
        _redirect(STDOUT, 1)
        _redirect(STDERR, 2)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        limit = int(used) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        result = READERS[name].read(READERS[name].name)
        code = 0 if result is None else result
    except (SortedfError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1 if isinstance(error, RuntimeError) else 2
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect(name: str, number: int) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, number)
    os.close(file)
    # Buffers of the parent are the parent's.
    stream = os.fdopen(number, "w", errors="backslashreplace", closefd=False)
    setattr(sys, "stdout" if number == 1 else "stderr", stream)


def _judged(name: str, folder: Path, content: bytes, status: int, memory: int) -> str:
    reader = READERS[name]
    errors = (folder / STDERR).read_text(errors="replace")
    if os.WIFSIGNALED(status):
        return f"{name}: killed by signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    if "Traceback" in errors or code == 99:
        return f"{name}: traceback: {errors.strip().splitlines()[-1][:200]}"
    if memory > MEMORY:
        return f"{name}: {memory >> 20} MiB of memory"
    if code not in (0, 2):
        return f"{name}: exit code {code}: {errors.strip()[:200]}"
    said = [line for line in errors.splitlines() if "error: " in line]
    if code == 2 and (len(said) != 1 or not errors.strip()):
        return f"{name}: {len(said)} lines for a refusal: {errors.strip()[:200]}"
    if len(errors) > 5000:
        return f"{name}: {len(errors)} letters on standard error"
    allowed = {"trace.csv", reader.name, STDOUT, STDERR, *reader.outputs}
    strange = {path.name for path in folder.iterdir()} - allowed
    if strange:
        return f"{name}: files {sorted(strange)}"
    if (folder / "trace.csv").read_text() != TRACE:
        return f"{name}: trace.csv changed"
    left = folder / reader.name
    if left.exists() and left.read_bytes() != content:
        return f"{name}: its input changed"
    return f"{name}: {'refused' if code else 'taken'}"


def is_fine(result: str) -> bool:
    """Whether an input was refused, or taken for what it is."""
    return result.endswith((": refused", ": taken"))


def _good(name: str, scratch: Path) -> list[bytes]:
    """Make good files of a kind, which also has everything compiled that reads them."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        here = Path.cwd()
        os.chdir(folder)
        try:
            Path("trace.csv").write_text(TRACE)
            files = READERS[name].good()
        finally:
            os.chdir(here)
    for content in files:
        result = attempt(name, content, scratch)
        assert result == f"{name}: taken", (result, content[:200])
    return files


def _tried(journal: Path | None) -> dict[int, str]:
    if journal is None or not journal.exists():
        return {}
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return {line["number"]: line["result"] for line in lines}


if __name__ == "__main__":
    sys.exit(main())
