"""Interface to HiGHS: arrays in; status, values, duals and a bound out."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.errors import MissingExtraError, SortedfError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FEASIBILITY = 1e-7
"""HiGHS's tolerance on rows and reduced costs."""

INTEGRALITY = 1e-6
"""HiGHS's tolerance on integer values."""

SOLVERS = ("simplex", "primal-simplex", "ipm", "pdlp", "hipo")
"""Algorithms for linear programs; "hipo" is not in every build of HiGHS."""

POLL_S = 0.1
"""Seconds between two checks for Ctrl-C of a waiting call."""


class SolverError(SortedfError, RuntimeError):
    """HiGHS failed; the message includes HiGHS's own."""


class SolverStatus(StrEnum):
    """Termination status of HiGHS."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    """Another limit: iterations, memory, a target."""
    UNKNOWN = "unknown"


STATUSES = {
    "kOptimal": SolverStatus.OPTIMAL,
    "kInfeasible": SolverStatus.INFEASIBLE,
    "kUnbounded": SolverStatus.UNBOUNDED,
    "kTimeLimit": SolverStatus.TIME_LIMIT,
    "kInterrupt": SolverStatus.INTERRUPTED,
    "kHighsInterrupt": SolverStatus.INTERRUPTED,
    "kIterationLimit": SolverStatus.LIMIT,
    "kSolutionLimit": SolverStatus.LIMIT,
    "kMemoryLimit": SolverStatus.LIMIT,
    "kObjectiveBound": SolverStatus.LIMIT,
    "kObjectiveTarget": SolverStatus.LIMIT,
    # Feasibility is undecided; an empty model was not passed correctly.
    "kUnboundedOrInfeasible": SolverStatus.UNKNOWN,
    "kModelEmpty": SolverStatus.UNKNOWN,
    "kNotset": SolverStatus.UNKNOWN,
    "kUnknown": SolverStatus.UNKNOWN,
}
"""Status by HiGHS's model status; any other one is UNKNOWN."""

FAILURES = frozenset(
    ("kLoadError", "kModelError", "kPresolveError", "kSolveError", "kPostsolveError")
)
"""Model statuses after which HiGHS has no usable result."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Columns of a program: non-negative variables with their costs and entries.

    Attributes
    ----------
    cost : float64 array, shape (m,)
    begin : int32 array, shape (m + 1,)
        Column `k` has the entries `begin[k]` to `begin[k + 1] - 1`.
    row : int32 array, shape (nonzeros,)
    value : float64 array, shape (nonzeros,)
    """

    cost: Floats
    begin: NDArray[np.int32]
    row: NDArray[np.int32]
    value: Floats

    def __len__(self) -> int:
        return len(self.cost)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Solution returned by HiGHS.

    Attributes
    ----------
    status : SolverStatus
    message : str
        HiGHS's message for it.
    x : float64 array or None
        A feasible point, if one was found.
    row_dual : float64 array or None
        Change of the objective per unit of each row's bound: negative on the binding
        rows `<=` of a minimisation. Linear programs only.
    objective : float or None
        Objective of `x`.
    dual_bound : float or None
        Lower bound on the objective of an integer program, in floating point.
    interrupted : bool
        Whether Ctrl-C was pressed, even if HiGHS finished first.
    runtime_s : float
    """

    status: SolverStatus
    message: str
    x: Floats | None
    row_dual: Floats | None
    objective: float | None
    dual_bound: float | None
    interrupted: bool
    runtime_s: float


class Model:
    """A program in HiGHS, to which columns can be added between solves.

    Minimise `c x` subject to `row_lower <= A x <= row_upper` and `x >= 0`, or
    `x` in {0, 1} if it is an integer program.

    Parameters
    ----------
    columns : Columns
    row_lower, row_upper : float64 array
        Infinite if there is no limit.
    integer : bool
    solver : str
        One of `SOLVERS`, for a linear program.
    presolve : bool
        Useful for a single solve; after added columns HiGHS starts from the last basis.

    Raises
    ------
    MissingExtraError
        If highspy cannot be imported.
    SolverError
        If HiGHS refuses the program or does not have the solver.
    """

    def __init__(
        self,
        columns: Columns,
        row_lower: Floats,
        row_upper: Floats,
        *,
        integer: bool = False,
        solver: str = "simplex",
        presolve: bool = True,
    ) -> None:
        self._errors: list[str] = []
        self._stop = threading.Event()
        self._highs = silent_highs()
        self._integer = integer
        self._subscribe()
        self._set_options(solver, presolve)
        self._pass(columns, row_lower, row_upper)

    def add(self, columns: Columns) -> None:
        """Add columns to a linear program; the last basis is kept."""
        m = len(columns)
        status = self._highs.addCols(
            m,
            columns.cost,
            np.zeros(m),
            np.full(m, np.inf),
            len(columns.row),
            columns.begin[:-1],
            columns.row,
            columns.value,
        )
        self._refuse_errors(status)

    def start_from(self, x: Floats) -> None:
        """Set a feasible initial point of an integer program."""
        point = _highspy().HighsSolution()
        point.col_value = x
        self._refuse_errors(self._highs.setSolution(point))

    def solve(self, time_limit_s: float | None = None) -> Solution:
        """Solve the program within a time limit.

        Ctrl-C stops HiGHS, and its best solution so far is returned; pressed again
        before HiGHS has stopped, it raises KeyboardInterrupt as usual. HiGHS checks for
        it between iterations, not during presolve and not in "pdlp".

        Raises
        ------
        SolverError
            If HiGHS ends with an error.
        """
        began = time.perf_counter()
        highs = self._highs
        limit = np.inf
        if time_limit_s is not None:
            # HiGHS's limit applies to the total time of all runs.
            limit = highs.getRunTime() + max(time_limit_s, 0.0)
        self._refuse_errors(highs.setOptionValue("time_limit", limit))
        self._refuse_errors(self._run())
        name = highs.getModelStatus().name
        message = highs.modelStatusToString(highs.getModelStatus())
        if name in FAILURES:
            raise SolverError(self._failure(message))
        info, found = highs.getInfo(), highs.getSolution()
        feasible = info.primal_solution_status == _highspy().kSolutionStatusFeasible
        has_x = feasible and found.value_valid
        has_dual = found.dual_valid and not self._integer
        has_bound = self._integer and np.isfinite(info.mip_dual_bound)
        return Solution(
            status=status_of(name),
            message=message,
            x=np.array(found.col_value) if has_x else None,
            row_dual=np.array(found.row_dual) if has_dual else None,
            objective=float(info.objective_function_value) if has_x else None,
            dual_bound=float(info.mip_dual_bound) if has_bound else None,
            interrupted=self._stop.is_set(),
            runtime_s=time.perf_counter() - began,
        )

    def _run(self) -> Any:
        """Run HiGHS in a separate thread, so that Ctrl-C reaches Python at once.

        HiGHS has one scheduler per thread, so its number of threads then does not
        depend on other uses of HiGHS in this process.
        """
        outcome: list[Any] = []
        done = threading.Event()

        def run() -> None:
            try:
                outcome.append(self._highs.run())
            finally:
                done.set()

        self._stop.clear()
        self._errors.clear()
        thread = threading.Thread(target=run, daemon=True)
        try:
            thread.start()
            _wait_for(done)
        except KeyboardInterrupt:
            self._stop.set()
            _wait_for(done)
        return outcome[0] if outcome else None

    def _subscribe(self) -> None:
        """Subscribe to HiGHS's error messages and interrupt callbacks."""

        def collect_error(event: Any) -> None:
            kind, _, text = event.message.partition(":")
            if kind == "ERROR":
                self._errors.append(text.strip())

        def interrupt(event: Any) -> None:
            event.interrupt(self._stop.is_set())

        highs = self._highs
        highs.cbLogging.subscribe(collect_error)
        for callback in (
            highs.cbSimplexInterrupt,
            highs.cbIpmInterrupt,
            highs.cbMipInterrupt,
        ):
            callback.subscribe(interrupt)

    def _set_options(self, solver: str, presolve: bool) -> None:
        if solver not in SOLVERS:
            raise ValueError(
                f"unknown solver {solver!r}; choose one of: {', '.join(SOLVERS)}."
            )
        primal = solver == "primal-simplex"
        options = {
            "threads": 1,
            "presolve": "on" if presolve else "off",
            "primal_feasibility_tolerance": FEASIBILITY,
            "dual_feasibility_tolerance": FEASIBILITY,
            "mip_feasibility_tolerance": INTEGRALITY,
            "mip_rel_gap": 0.0,  # no early stop: the optimum is an integer
            "simplex_strategy": 4 if primal else 1,
            "run_crossover": "off",  # prices and mean starts need no vertex
            "output_flag": solver != "pdlp",  # it prints without using the log
        }
        if not self._integer:
            options["solver"] = "simplex" if primal else solver
        for name, value in options.items():
            self._refuse_errors(self._highs.setOptionValue(name, value))

    def _pass(self, columns: Columns, row_lower: Floats, row_upper: Floats) -> None:
        m = len(columns)
        status = self._highs.passModel(
            m,
            len(row_lower),
            len(columns.row),
            1,  # by columns
            1,  # minimise
            0.0,
            columns.cost,
            np.zeros(m),
            np.full(m, 1.0 if self._integer else np.inf),
            row_lower,
            row_upper,
            columns.begin[:-1],
            columns.row,
            columns.value,
            np.full(m, int(self._integer), dtype=np.int32),
        )
        self._refuse_errors(status)

    def _refuse_errors(self, status: Any) -> None:
        if status is None or status.name == "kError":
            raise SolverError(self._failure("error"))

    def _failure(self, what: str) -> str:
        return ": ".join([f"HiGHS failed ({what})", *self._errors[-3:]])


def status_of(name: str) -> SolverStatus:
    """Return our status for a HiGHS model status; UNKNOWN if it is not in the table."""
    return STATUSES.get(name, SolverStatus.UNKNOWN)


def silent_highs() -> Any:
    """Create a HiGHS object that prints nothing, not even its banner.

    HiGHS prints the banner once per process, on standard output, when callbacks are
    enabled, which is before its constructor returns.
    """

    class Silent(_highspy().Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:
            self.setOptionValue("log_to_console", False)
            super().enableCallbacks()

    return Silent()


def _highspy() -> Any:
    try:
        import highspy
    except ImportError as error:
        raise MissingExtraError(
            "highspy, the Python interface of the HiGHS solver, cannot be imported; "
            f"install it with: pip install highspy ({error})."
        ) from error
    return highspy


def _wait_for(done: threading.Event) -> None:
    # Not by Thread.join: in Python 3.11 and 3.12 an interrupted join marks the thread
    # as finished.
    while not done.wait(POLL_S):
        pass
