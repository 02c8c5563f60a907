"""Files of plans, and of certificates of bounds in seconds."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from sortedf.arrays import MAX_STEP
from sortedf.atomic import atomic_path
from sortedf.engine_plan.seconds_certificate import (
    SecondsCertificate,
    SecondsClaim,
    seconds_prove,
)
from sortedf.engine_plan.stepwise_certificate import (
    StepwiseCertificate,
    stepwise_prove,
)
from sortedf.engine_plan.timed_certificate import TimedCertificate, timed_prove
from sortedf.errors import CertificateError, TraceError
from sortedf.json_values import read_json
from sortedf.shown import shown_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from sortedf.engine_plan.planning import PlanFound
    from sortedf.engine_plan.workload import EngineWorkload

PLAN = "sortedf engine plan"
"""Kind of the files."""

CERTIFICATES: dict[str, type[SecondsClaim]] = {
    "sortedf seconds": SecondsCertificate,
    "sortedf seconds over time": TimedCertificate,
    "sortedf prices of each step": StepwiseCertificate,
}
"""Certificates by the kind of their files."""

PROOFS: dict[type[SecondsClaim], Callable[[EngineWorkload, Any], int]] = {
    SecondsCertificate: seconds_prove,
    TimedCertificate: timed_prove,
    StepwiseCertificate: stepwise_prove,
}
"""What evaluates each kind of certificate."""


def write_plan(
    found: PlanFound,
    path: str | PathLike[str],
    *,
    kept: NDArray[np.int64],
    num_rows: int,
) -> None:
    """Write a plan to a file that `sortedf check` and `sortedf run` can read.

    The file holds one JSON object: `start` has for each row of the trace the number of
    steps before the request's admission, `position` its position in the order of
    admission, which is the order of service in a step, both null for a row that was
    left out; `engine` and `step_times` describe the engine of the plan.

    Parameters
    ----------
    found : PlanFound
    path : path
        Written atomically.
    kept : int64 array, shape (n,)
        Row of each request in the trace, counted from 0.
    num_rows : int
        Rows of the trace.
    """
    plan = found.plan
    start: list[int | None] = [None] * num_rows
    position: list[int | None] = [None] * num_rows
    rows = kept.tolist()
    for row, step in zip(rows, plan.start.tolist(), strict=True):
        start[row] = step
    for place, i in enumerate(plan.order.tolist()):
        position[rows[i]] = place
    content = {
        "kind": PLAN,
        "kv_budget": plan.workload.rules.kv_budget,
        "method": found.method,
        "backfill": plan.admission.backfill,
        "engine": asdict(plan.workload.rules),
        "step_times": [asdict(time) for time in plan.workload.step_times],
        "start": start,
        "position": position,
    }
    with atomic_path(path) as unfinished:
        unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_plan(
    path: str | PathLike[str],
) -> tuple[list[int | None], list[int | None], dict[str, Any]]:
    """Read `start` and `position` by row, and the engine that the plan was made for.

    Raises
    ------
    TraceError
        If the file cannot be read or has other content; the message names it.
    """
    content = read_json(path, TraceError)
    if not isinstance(content, dict) or content.get("kind") != PLAN:
        raise TraceError(
            f'{path} is no plan for an engine: "kind" must be {PLAN!r}, as '
            "'sortedf solve -o' writes it where prompts are cut or steps differ."
        )
    columns = []
    for name in ("start", "position"):
        column = content.get(name)
        if not isinstance(column, list):
            raise TraceError(f'{path}: "{name}" is missing or is no list.')
        for row, value in enumerate(column, start=1):
            good = type(value) is int and 0 <= value <= MAX_STEP
            if value is not None and not good:
                raise TraceError(
                    f"{path}: {name} of row {row} is {shown_json(value)} but must be "
                    f"an integer from 0 to {MAX_STEP}, or null."
                )
        columns.append(column)
    engine = content.get("engine")
    return columns[0], columns[1], engine if isinstance(engine, dict) else {}


def write_seconds_certificate(
    certificate: SecondsClaim, path: str | PathLike[str]
) -> None:
    """Write a certificate as one JSON object, atomically."""
    kind = next(k for k, v in CERTIFICATES.items() if isinstance(certificate, v))
    with atomic_path(path) as unfinished:
        content = {"kind": kind, **asdict(certificate)}
        unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_seconds_certificate(
    path: str | PathLike[str],
) -> SecondsClaim:
    """Read a certificate of a bound in seconds.

    Raises
    ------
    CertificateError
        If the file cannot be read or has other content; the message names it.
    """
    content = read_json(path, CertificateError)
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in CERTIFICATES:
        raise CertificateError(
            f'{path} is no certificate in seconds: "kind" must be '
            f"{' or '.join(map(repr, CERTIFICATES))}."
        )
    values: dict[str, Any] = {}
    for field in fields(CERTIFICATES[kind]):
        value = content.get(field.name)
        good, value = _typed(value, str(field.type))
        if not good:
            raise CertificateError(
                f"{path}: {field.name!r} is missing or is no {field.type}."
            )
        values[field.name] = value
    return CERTIFICATES[kind](**values)


def prove_in_seconds(workload: EngineWorkload, certificate: SecondsClaim) -> int:
    """Evaluate a certificate of any kind: what it proves, in 1e-15 seconds."""
    return PROOFS[type(certificate)](workload, certificate)


def _typed(value: Any, kind: str) -> tuple[bool, Any]:
    """Whether a JSON value is of a field's type, and the value with its lists fixed."""
    if kind == "str":
        return isinstance(value, str), value
    if kind == "int":
        return type(value) is int, value
    inner = kind.removeprefix("tuple[").removesuffix(", ...]")
    if not isinstance(value, list):
        return False, value
    found = [_typed(each, inner) for each in value]
    return all(good for good, _ in found), tuple(each for _, each in found)
