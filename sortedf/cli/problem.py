"""Options of an instance, common to several commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

import sortedf
from sortedf.cli.common_options import (
    BacklogOption,
    DropOversizeOption,
    StepSecondsOption,
)
from sortedf.cli.trace_options import TraceOptions
from sortedf.errors import TraceError
from sortedf.instance import Instance
from sortedf.result import Result
from sortedf.schedule_file import read_start
from sortedf.step_time import StepTime, step_time_of
from sortedf.traces import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(TraceOptions):
    """A trace and its conversion to an instance; each field is an option."""

    step_time: StepSecondsOption = "1"
    backlog: BacklogOption = False
    drop_oversize: DropOversizeOption = False

    @property
    def inputs(self) -> tuple[Path | str | None, ...]:
        """Files that are read and that no output may overwrite."""
        return self.trace, self.tokenizer, self.step_time

    @property
    def needs_engine_plan(self) -> bool:
        """Whether prompts may be cut or steps differ, so that it takes another plan."""
        equal = _is_number(self.step_time) or step_time_of(self.step_time).is_constant
        return not equal or bool(self.engine_model().not_planned())

    def read(self) -> LoadedProblem:
        """Read the trace and check every request against the budget."""
        file = self.read_file()
        trace, engine = file.trace, self.engine_model()
        step_s = step_seconds(self.step_time)
        instance, kept = trace.to_instance(
            engine=engine,
            step_time_s=step_s,
            backlog=self.backlog,
            drop_oversize=self.drop_oversize,
        )
        step_time = StepTime(constant_s=step_s)
        file.say(engine, step_time)
        return LoadedProblem(trace, instance, kept, file.about(engine, step_time))


@dataclass(frozen=True, slots=True, eq=False)
class LoadedProblem:
    """A trace, its instance, the positions of its requests, and what was read."""

    trace: Trace
    instance: Instance
    kept: NDArray[np.int64]
    read: dict[str, Any]

    def dropped_rows(self) -> list[int]:
        """Rows of the file that were left out."""
        rows: list[int] = np.delete(self.trace.row, self.kept).tolist()
        return rows

    def title(self) -> str:
        """Title of the output: trace, number of requests and KV budget."""
        dropped = self.trace.num_requests - len(self.kept)
        left_out = f", {dropped:,} that can never run left out" if dropped else ""
        return (
            f"{self.trace.name}: {len(self.kept):,} requests, "
            f"KV budget {self.instance.kv_budget:,} tokens{left_out}"
        )

    def read_start(self, path: Path) -> list[int]:
        """Read the start steps of a schedule file for the instance's requests."""
        start = read_start(path)
        rows = self.trace.num_requests
        if len(start) != rows:
            raise TraceError(
                f"{path} has {len(start)} start steps but {self.trace.name} has {rows} "
                "requests; they must be equally many."
            )
        kept = set(self.kept.tolist())
        for k, step in enumerate(start):
            if (step is None) == (k in kept):
                row = int(self.trace.row[k])
                problem = "has no start step" if step is None else "can never run"
                raise TraceError(
                    f"{path}: row {row} of {self.trace.name} {problem}; null stands "
                    "for the rows that --drop-oversize leaves out, and for no others."
                )
        return [step for step in start if step is not None]

    def confirm(self, result: Result) -> None:
        """Check a result independently before it is shown."""
        report = sortedf.check(self.instance, result.schedule)
        if not report.feasible or report.tel != result.tel:
            raise RuntimeError(
                f"{result.method} gave a schedule that the checker refuses: {report}"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def refuse_for_engines(**given: bool) -> None:
    """Refuse options that plans for an engine do not have, by whether they were given.

    Raises
    ------
    ValueError
        If one was; the message names it.
    """
    for name, is_given in given.items():
        if is_given:
            raise ValueError(
                f"--{name.replace('_', '-')} is not for plans where prompts are cut or "
                "steps differ in length."
            )


def step_seconds(text: str) -> float:
    """Parse the constant duration of a step in seconds."""
    try:
        return float(text)
    except ValueError:
        step_time = step_time_of(text)
    if not step_time.is_constant:
        raise ValueError(
            f"--step-time {text}: its steps differ in length, but a schedule needs "
            "equal ones; give seconds per step, or use 'sortedf simulate'."
        )
    return step_time.constant_s


def takes_problem(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's first parameter, such as a `Problem`, by its options.

    The type of that parameter is a dataclass whose fields are options.
    """
    first, *own = inspect.signature(command, eval_str=True).parameters.values()
    make = first.annotation
    names = [field.name for field in fields(make)]

    def run(**values: Any) -> None:
        problem = make(**{name: values.pop(name) for name in names})
        command(problem, **values)

    # Each class of a hierarchy names its types as its own file does.
    types = get_type_hints(make, include_extras=True)
    problem_parameters = [
        parameter.replace(annotation=types[parameter.name])
        for parameter in inspect.signature(make).parameters.values()
    ]
    # The trace is the first positional argument, followed by the command's own.
    every = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*problem_parameters, *own)
    ]
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return run
