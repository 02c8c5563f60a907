"""Policies that follow an offline schedule: its start steps, or its order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.listed import ListPolicy
from online.policies.parts.ranked_queue import RankedQueue
from online.policy import register_policy
from online.state import UNTIL_EVENT, Decision

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from online.requests import RequestView
    from online.state import State


class PlannedStarts:
    """Starts each request at its planned time, in the plan's order.

    A request that does not fit at its planned time starts as soon as it fits, before
    all that are planned later.

    Parameters
    ----------
    start_s : array_like of float, shape (n,)
        Planned start of each request, by id, in seconds, or in steps with unit steps.
    """

    def __init__(self, start_s: ArrayLike) -> None:
        self.start_s = np.asarray(start_s, dtype=np.float64)
        if self.start_s.ndim != 1:
            raise ValueError(
                f"start_s has {self.start_s.ndim} dimensions but must have 1: a start "
                "for each request."
            )
        self._queue = RankedQueue(self._planned)

    def _planned(
        self, requests: RequestView, ids: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return np.asarray(self.start_s[ids])

    def decide(self, state: State) -> Decision:
        """Start the requests whose planned time has come."""
        self._queue.update(state)
        due: list[int] = []
        for i in self._queue:
            if self.start_s[i] > state.now_s:
                if not due:
                    next_s = float(self.start_s[i])
                    return Decision(
                        wake_s=next_s, quiet_until=math.inf, quiet_until_s=next_s
                    )
                break
            due.append(i)
        return Decision(start=due) if due else UNTIL_EVENT


@register_policy(
    "plan",
    about="an offline schedule's start steps",
    knows="a length",
    needs_plan=True,
)
def plan(start_s: ArrayLike) -> PlannedStarts:
    """Follow planned starts."""
    return PlannedStarts(start_s)


class PlannedSteps:
    """Starts each request in its planned step, by the engine's count of steps.

    A request that does not fit in its step starts as soon as it fits, before all that
    are planned later.

    Parameters
    ----------
    start : array_like of int, shape (n,)
        Steps that the engine has done when a request starts, by id.
    order : array_like of int, shape (n,)
        All ids in the order in which they start.
    """

    def __init__(self, start: ArrayLike, order: ArrayLike) -> None:
        ids = np.asarray(order, dtype=np.int64)
        self.start: list[int] = np.asarray(start, dtype=np.int64).tolist()
        self._position = np.empty(len(ids))
        self._position[ids] = np.arange(len(ids))
        self._queue = RankedQueue(self._planned)

    def _planned(
        self, requests: RequestView, ids: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return np.asarray(self._position[ids])

    def decide(self, state: State) -> Decision:
        """Start the requests that are due."""
        self._queue.update(state)
        due: list[int] = []
        for i in self._queue:
            if self.start[i] > state.step:
                if not due:
                    return Decision(quiet_until=self.start[i])
                break
            due.append(i)
        return Decision(start=due) if due else UNTIL_EVENT


@register_policy(
    "plan-steps",
    about="the steps of a plan made for an engine",
    knows="a length",
    needs_plan=True,
)
def plan_steps(start: ArrayLike, order: ArrayLike) -> PlannedSteps:
    """Follow planned steps."""
    return PlannedSteps(start, order)


@register_policy(
    "list", about="an offline schedule's order", knows="a length", needs_plan=True
)
def in_order(order: ArrayLike, backfill: int = 0) -> ListPolicy:
    """Follow an order; each request starts as soon as look-ahead admits it."""
    ids = np.asarray(order, dtype=np.int64)
    position = np.empty(len(ids))
    position[ids] = np.arange(len(ids))

    def rank(requests: RequestView, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(position[ids])

    return ListPolicy(RankedQueue(rank), "look-ahead", backfill)
