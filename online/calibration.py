"""Fit of a step-time model to the observed steps of an engine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.log_file import LogError, columns
from sortedf.json_values import read_lines
from sortedf.step_time import StepTime

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COUNTS = ("prefill_tokens", "num_decoding", "kv_tokens")
"""Explanatory variables of a step's duration, besides the constant."""

ROUNDS = 12
"""Rounds of weighting, after which the least sum of absolute errors is near enough."""

TIE = 1e-4
"""Weight, per step, of the rule that what the constant explains is the constant's."""

LEAST_CONSTANT_S = 1e-9
"""Replaces a fitted constant of 0, since a model's constant must be positive."""


@dataclass(frozen=True, slots=True, eq=False)
class StepSamples:
    """Observed steps.

    Attributes
    ----------
    duration_s : float64 array, shape (k,)
    counts : float64 array, shape (k, 3)
        Prompt tokens, decoding requests, tokens of KV.
    """

    duration_s: Floats
    counts: Floats


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted step-time model and the quality of the fit.

    Attributes
    ----------
    step_time : StepTime
    num_steps : int
    r_squared : float
        Share of the variance that the model explains.
    residual_s : dict of str to float
        Quantiles of `|observed - modelled|`, in seconds: p50, p90, p99, max.
    """

    step_time: StepTime
    num_steps: int
    r_squared: float
    residual_s: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Model and fit as one dict, for the file."""
        return {
            **asdict(self.step_time),
            "num_steps": self.num_steps,
            "r_squared": self.r_squared,
            "residual_s": self.residual_s,
        }


def read_samples(path: str | PathLike[str]) -> StepSamples:
    """Read observed steps from a log.

    Each line is a JSON object with `prefill_tokens`, `num_decoding`, `kv_tokens` and
    `duration_s`, or `begin_s` and `end_s` instead of it. Lines whose `kind` is not
    "step" are ignored, so the log of a run is accepted. A file of one object with a
    list for each of these names is also accepted.

    Raises
    ------
    LogError
        If the file cannot be read; the message names file and line.
    """
    lines = read_lines(path, LogError)
    rows = [line for line in lines if line[1].get("kind", "step") == "step"]
    if len(rows) == 1 and isinstance(rows[0][1].get("prefill_tokens"), list):
        rows = _unfold(path, rows[0][1])
    if not rows:
        raise LogError(f"{path} has no steps.")
    table = columns(path, rows, COUNTS)
    if "duration_s" in rows[0][1]:
        duration = columns(path, rows, ["duration_s"])["duration_s"]
    else:
        clock = columns(path, rows, ["begin_s", "end_s"])
        duration = clock["end_s"] - clock["begin_s"]
    counts = np.stack([table[name] for name in COUNTS], axis=1).astype(np.float64)
    return StepSamples(duration.astype(np.float64), counts)


def calibrate(samples: StepSamples) -> Calibration:
    """Fit the four terms of a step's duration by non-negative least squares.

    Raises
    ------
    ValueError
        If there are fewer steps than terms, or a duration is not above 0.
    """
    seen = samples.duration_s
    if len(seen) < 4:
        raise ValueError(f"{len(seen)} steps are too few to fit four terms.")
    if not (np.isfinite(seen).all() and (seen > 0).all()):
        k = int(np.argmin(np.where(np.isfinite(seen), seen, -np.inf)))
        raise ValueError(f"step {k + 1} took {seen[k]:g} s but must take above 0.")
    terms, scale = _scaled_terms(samples)
    found = _least_squares(terms, seen)
    step_time = _step_time(found / scale)
    residual = np.abs(seen - terms @ found)
    spread = float(((seen - seen.mean()) ** 2).sum())
    unexplained = float((residual**2).sum())
    p50, p90, p99 = np.quantile(residual, [0.5, 0.9, 0.99]).tolist()
    return Calibration(
        step_time,
        len(seen),
        1 - unexplained / spread if spread else 1.0,
        {"p50": p50, "p90": p90, "p99": p99, "max": float(residual.max())},
    )


def robust_step_time(samples: StepSamples) -> StepTime:
    """Fit the terms to steps of a server, some of which were held up by other things.

    The sum of absolute errors is minimised, by reweighted least squares, so that a few
    steps with a pause do not count. Terms that these steps cannot tell from a constant
    are 0, since a policy asks for steps with a full cache, perhaps far from them.

    Parameters
    ----------
    samples : StepSamples
        At least one, each with a duration above 0.
    """
    seen = samples.duration_s
    terms, scale = _scaled_terms(samples)
    typical_s = float(np.median(seen))
    tie = np.diag([0.0, 1.0, 1.0, 1.0]) * np.sqrt(TIE * len(seen))
    weight = typical_s / np.maximum(seen, typical_s)
    for _ in range(ROUNDS):
        root = np.sqrt(weight)
        rows = np.vstack([terms * root[:, None], tie])
        found = _least_squares(rows, np.append(seen * root, np.zeros(4)))
        residual = np.abs(seen - terms @ found)
        weight = typical_s / np.maximum(residual, 0.01 * typical_s)
        weight /= weight.mean()
    return _step_time(found / scale)


def _scaled_terms(samples: StepSamples) -> tuple[Floats, Floats]:
    """Return the terms of each step, and the scale that they were divided by.

    Counts of KV tokens are a million times larger than the constant.
    """
    terms = np.column_stack([np.ones(len(samples.counts)), samples.counts])
    scale = np.maximum(terms.max(axis=0), 1.0)
    return terms / scale, scale


def _least_squares(terms: Floats, seen: Floats) -> Floats:
    from scipy.optimize import nnls  # not at the top: slow to import

    return np.asarray(nnls(terms, seen)[0])


def _step_time(weights: Floats) -> StepTime:
    constant, *per_count = weights.tolist()
    return StepTime(max(constant, LEAST_CONSTANT_S), *per_count)


def _unfold(
    path: str | PathLike[str], table: dict[str, Any]
) -> list[tuple[int, dict[str, Any]]]:
    lists = {name: values for name, values in table.items() if isinstance(values, list)}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1:
        raise LogError(
            f"{path} has lists of unequal length: {json.dumps(lengths)}; each needs "
            "one entry per step."
        )
    return [
        (k, dict(zip(lists, values, strict=True)))
        for k, values in enumerate(zip(*lists.values(), strict=True), start=1)
    ]
