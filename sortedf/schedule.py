"""Schedules: one start step per request, and quantities derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import MAX_STEP, exact_sum, frozen_ints
from sortedf.kv_usage import kv_used_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.instance import Instance


def require_schedule(given: object) -> None:
    """Raise a TypeError that names `Schedule(instance, steps)` if it is no schedule."""
    if not isinstance(given, Schedule):
        raise TypeError(
            f"start must be a Schedule, not {type(given).__name__}; start steps become "
            "one by Schedule(instance, steps)."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Start steps of an instance's requests.

    Only shape and range are checked here; `sortedf.checker` checks feasibility.

    Parameters
    ----------
    instance : Instance
    start : array_like of int, shape (n,)
        `p`: the step after which each request runs, by request id.

    Raises
    ------
    ValueError, TypeError
        If `start` has another length or an entry that is no step.
    """

    instance: Instance
    start: NDArray[np.int64]

    if TYPE_CHECKING:  # accepted types; the fields above have the converted ones

        def __init__(self, instance: Instance, start: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        start = frozen_ints("start", self.start, minimum=0, maximum=MAX_STEP)
        n = self.instance.num_requests
        if len(start) != n:
            raise ValueError(
                f"start has {len(start)} entries but the instance has {n} requests; "
                "they must be equally many."
            )
        object.__setattr__(self, "start", start)

    def __reduce__(self) -> tuple[type[Schedule], tuple[Any, ...]]:
        return Schedule, (self.instance, self.start)

    def __repr__(self) -> str:
        return (
            f"Schedule({len(self.start)} requests, tel={self.tel}, "
            f"makespan={self.makespan})"
        )

    @property
    def completion(self) -> NDArray[np.int64]:
        """Step of each request's last token, `C = p + o`."""
        return self.start + self.instance.decode

    @property
    def latency(self) -> NDArray[np.int64]:
        """End-to-end latency of each request in steps, `C - a`."""
        return self.completion - self.instance.arrival

    @property
    def tel(self) -> int:
        """Total end-to-end latency in steps, the objective: the sum of `C - a`."""
        return exact_sum(self.latency)

    @property
    def mean_latency(self) -> float:
        """`tel / n` in steps; 0 for an empty schedule."""
        return self.tel / len(self.start) if len(self.start) else 0.0

    @property
    def makespan(self) -> int:
        """Step of the last completion; 0 for an empty schedule."""
        return int(self.completion.max(initial=0))

    @property
    def peak_kv(self) -> int:
        """Most KV held in any step, in tokens; usage peaks at completions."""
        steps = np.unique(self.completion)
        return int(kv_used_at(self.instance, self.start, steps).max(initial=0))

    def kv_usage(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """KV usage over time, as the points of a piecewise linear curve with jumps.

        The KV held in step `t` belongs to the interval from `t - 1` to `t`. So each
        event, a start or a completion, has two points: the usage of the step that ends
        there and of the step that begins there.

        Returns
        -------
        time, used : int64 arrays of equal length
            Steps in ascending order, each twice, and the tokens held.
        """
        event = np.unique(np.concatenate([self.start, self.completion]))
        step = np.stack([event, event + 1], axis=1).ravel()
        return np.repeat(event, 2), kv_used_at(self.instance, self.start, step)
