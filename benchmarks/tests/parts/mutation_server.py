"""Run tests on mutants of the code under test, in one process that forks for each.

`python -m benchmarks.tests.parts.mutation_server JOB.json` prints one JSON line for
each mutant. Everything is imported and collected once. The tests run once as they are,
with a note of which lines of the files each one runs; then, for each mutant, in a child
process: the changed functions get their new code, and those tests run that touch the
changed lines, until one fails: those of the first path first, the fastest of each.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import _lru_cache_wrapper, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol
from numba.core import event

from benchmarks.tests.parts.mutants import Mutant, changed_tree, mutants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Functions = dict[tuple[str, str, int], list[FunctionType]]
"""Function objects by their file, name and first line."""

CAUGHT, SURVIVED, NOT_PUT, TIME_LIMIT = "caught", "survived", "not put", "time limit"
EXIT = {0: SURVIVED, 1: CAUGHT, 3: NOT_PUT}

SPARE_S = 1.5
TIMES_AS_LONG = 4
"""A mutant may take so many times the processor time of the clean run, and a little."""

WALL_S = 60.0
"""Longest wait for a child, which may sleep on a lock."""

EXAMPLES = 30
"""Examples of a property, where it asks for no number itself."""

LONGEST_TEST_S = 12.0
"""A test that takes longer while its lines are recorded is left out."""

MOST_TESTS_S = 20.0
"""Of the tests that touch a line, so many seconds are run; the first ones.

Seconds of the clean run, which records lines: what is not compiled is several times as
fast on a mutant.
"""

MORE_BYTES = 3 * 2**30
"""Memory in bytes that a mutant may take beyond that of the clean run."""


class Compiling(event.Listener):  # type: ignore[misc]
    """Knows whether a kernel is being compiled."""

    depth = 0

    def on_start(self, event: event.Event) -> None:
        """Enter a compilation, maybe within another."""
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """Leave it."""
        self.depth -= 1


COMPILING = Compiling()
event.register("numba:compile", COMPILING)


@dataclass(slots=True)
class Clean:
    """One test, run without a change."""

    item: pytest.Item
    seconds: float = 0.0
    lines: set[tuple[str, int]] = field(default_factory=set)


class Server:
    """A plugin of pytest that runs its items on mutants instead of once.

    Parameters
    ----------
    sites : dict of str to list of int
        The files that are changed, and which of their mutants are tried.
    tests : list of str
        Paths of the tests, the most telling ones first.
    """

    def __init__(self, sites: dict[str, list[int]], tests: list[str]) -> None:
        self.tests = [Path(path).resolve() for path in tests]
        self.sources = {
            str(Path(path).resolve()): Path(path).read_text(encoding="utf-8")
            for path in sites
        }
        self.chosen = [
            (path, mutant)
            for (path, source), wanted in zip(
                self.sources.items(), sites.values(), strict=True
            )
            for mutant in mutants(source)
            if mutant.site in set(wanted)
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Configure hypothesis, after conftest and before the test files."""
        import hypothesis  # not before pytest rewrites its assertions

        hypothesis.settings.register_profile(
            "mutations",
            derandomize=True, deadline=None, database=None, max_examples=EXAMPLES,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )  # fmt: skip
        hypothesis.settings.load_profile("mutations")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run clean, then on every mutant."""
        if session.testsfailed:
            raise pytest.UsageError("the tests could not be collected.")
        began = time.perf_counter()
        clean = self.run_clean(session.items)
        say({"tests": len(clean), "clean_s": round(time.perf_counter() - began, 2)})
        for known in gc.get_objects():
            if isinstance(known, _lru_cache_wrapper):
                known.cache_clear()
        functions = self.functions()
        gc.freeze()
        self.check_harness(clean, functions)
        for path, mutant in self.chosen:
            where = {"path": os.path.relpath(path)}
            say(where | asdict(mutant) | self.judge(path, mutant, clean, functions))
        return True

    def run_clean(self, items: list[pytest.Item]) -> list[Clean]:
        """Run each test and record the lines that it runs; leave skips out."""
        found = []
        for item, after in zip(items, [*items[1:], None], strict=True):
            one = Clean(item)
            with time_limit(LONGEST_TEST_S), Tracer(set(self.sources), one.lines):
                began = time.process_time()
                reports = runtestprotocol(item, log=False, nextitem=after)
                one.seconds = time.process_time() - began
            for report in reports:
                if report.failed:
                    raise pytest.UsageError(
                        f"{item.nodeid} fails without a change: {report.longreprtext}"
                    )
            if not any(report.skipped for report in reports):
                found.append(one)
        return sorted(found, key=lambda one: (self.rank(one.item), one.seconds))

    def rank(self, item: pytest.Item) -> int:
        """Place of a test's file in the list of paths."""
        return [item.path.is_relative_to(path) for path in self.tests].index(True)

    def functions(self) -> Functions:
        """Find every function object of the files, by its name and first line."""
        found: Functions = {}
        for known in gc.get_objects():
            if isinstance(known, FunctionType):
                code = known.__code__
                if code.co_filename in self.sources:
                    key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                    found.setdefault(key, []).append(known)
        return found

    def check_harness(self, clean: list[Clean], functions: Functions) -> None:
        """See that a file's own code, put in as a mutant is, passes."""
        for path, source in self.sources.items():
            names = {mutant.function for at, mutant in self.chosen if at == path}
            few = affordable([one for one in clean if path in dict(one.lines)])
            tree = ast.parse(source)
            if self.in_child(path, tree, names, few, functions) != SURVIVED:
                raise pytest.UsageError(f"{path} fails when its own code is put in.")

    def judge(
        self, path: str, mutant: Mutant, clean: list[Clean], functions: Functions
    ) -> dict[str, Any]:
        """Run the tests that touch the changed lines."""
        lines = {(path, k) for k in range(mutant.line, mutant.end_line + 1)}
        # Constants of the file are read where no line tells.
        anywhere = mutant.function.isupper()
        touched = [one for one in clean if anywhere or one.lines & lines]
        began = time.perf_counter()
        if touched:
            tree, names = changed_tree(self.sources[path], mutant), {mutant.function}
            how = self.in_child(path, tree, names, affordable(touched), functions)
        else:
            how = SURVIVED
        seconds = round(time.perf_counter() - began, 2)
        return {"how": how, "touched": len(touched), "seconds": seconds}

    def in_child(
        self,
        path: str,
        tree: ast.Module,
        names: set[str],
        touched: list[Clean],
        functions: Functions,
    ) -> str:
        """Fork; put the code in; run the tests until one fails."""
        sys.stdout.flush()
        limit_s = SPARE_S + TIMES_AS_LONG * sum(one.seconds for one in touched)
        child = os.fork()
        if child == 0:
            be_child(partial(put, tree, names, functions, path), touched, limit_s)
        return wait(child)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Skip the test that runs when the processor time is over."""

    def skip(*_: object) -> None:
        if COMPILING.depth:  # a kernel that is half compiled would fail ever after
            signal.setitimer(signal.ITIMER_PROF, 1.0)
        else:
            pytest.skip("too slow")

    signal.signal(signal.SIGPROF, skip)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def affordable(touched: list[Clean]) -> list[Clean]:
    """Choose the first tests, one at least, that take `MOST_TESTS_S` together."""
    few: list[Clean] = []
    for one in touched:
        if not few or one.seconds + sum(k.seconds for k in few) <= MOST_TESTS_S:
            few.append(one)
    return few


def be_child(put_code: Callable[[], None], tests: list[Clean], limit_s: float) -> None:
    """Run as a child; never return: the exit code says what came out."""
    code = 3
    try:
        os.setsid()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        resource.setrlimit(resource.RLIMIT_DATA, (used_bytes() + MORE_BYTES, -1))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        put_code()
        code = 1
        items = [one.item for one in tests]
        for item, after in zip(items, [*items[1:], None], strict=True):
            reports = runtestprotocol(item, log=False, nextitem=after)
            if any(report.failed for report in reports):
                os._exit(1)
        code = 0
    finally:
        os._exit(code)


def put(tree: ast.Module, names: set[str], functions: Functions, path: str) -> None:
    """Give each function its new code; constants are set in the modules that have them.

    A function is changed from outside in: those within another one are made by its new
    code when it is called.
    """
    module = compile(tree, path, "exec", dont_inherit=True)
    for code in within(module):
        if code.co_qualname in names:
            for function in functions[path, code.co_qualname, code.co_firstlineno]:
                function.__code__ = code
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in names:
            put_constant(node, path)


def put_constant(node: ast.Assign, path: str) -> None:
    """Set a constant in its own module, and in those that imported it."""
    known = [one for one in sys.modules.values() if isinstance(one, ModuleType)]
    (origin,) = (one for one in known if getattr(one, "__file__", None) == path)
    name = ast.unparse(node.targets[0])
    old = getattr(origin, name)
    new = eval(ast.unparse(node.value), dict(vars(origin)))
    for one in known:
        if one.__dict__.get(name) is old:
            setattr(one, name, new)


def within(code: CodeType) -> list[CodeType]:
    """Yield all code objects inside one."""
    found = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += [constant, *within(constant)]
    return found


def used_bytes() -> int:
    """Memory of this process: data and what was mapped."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(pages[0]) * resource.getpagesize()


def wait(child: int) -> str:
    """Wait for a child; kill it and its children after the limit."""
    end = time.monotonic() + WALL_S
    pause = 0.001
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done or time.monotonic() > end:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not done:
        os.waitpid(child, 0)
        return TIME_LIMIT
    if os.WIFSIGNALED(status):
        ended = os.WTERMSIG(status)
        return TIME_LIMIT if ended == signal.SIGPROF else CAUGHT
    return EXIT.get(os.WEXITSTATUS(status), CAUGHT)


class Tracer:
    """Collects the lines of some files that are run, in all threads."""

    def __init__(self, paths: set[str], lines: set[tuple[str, int]]) -> None:
        self._paths, self._lines = paths, lines

    def __enter__(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line(frame, event, argument) if self._is_ours(frame) else None

    def _is_ours(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename in self._paths

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


OUT = os.dup(1)
"""Standard output, before pytest captures it."""


def say(line: dict[str, Any]) -> None:
    """Print a JSON line."""
    os.write(OUT, (json.dumps(line) + "\n").encode())


def main(job: dict[str, Any]) -> int:
    """Run one job."""
    arguments = ["-q", "-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=none"]
    return int(pytest.main([*arguments, *job["tests"]], plugins=[Server(**job)]))


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
