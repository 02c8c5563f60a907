"""Highest response ratio next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy
from online.policies.parts.moving_queue import MovingQueue
from online.policy import register_policy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.state import State

Service = Literal["predicted", "prompt"]


def _predicted_work(state: State, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    requests, time = state.requests, state.step_time
    prompt = requests.prefill[ids] * time.work(1, 0)
    return np.asarray(prompt + requests.predicted[ids] * time.work(0, 1))


def _prompt_work(state: State, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    requests, time = state.requests, state.step_time
    return np.asarray(requests.prefill[ids] * time.work(1, 0) + time.work(0, 1))


WORK = {"predicted": _predicted_work, "prompt": _prompt_work}


@register_policy("hrrn", about="highest response ratio next", knows="a length")
def hrrn(
    service: Service = "predicted", admission: Admission = "engine", backfill: int = 0
) -> ListPolicy:
    """Highest `(waited + service) / service` first (Brinch Hansen 1971).

    Short requests are served first, and none waits forever: a ratio grows with time,
    faster for shorter requests. Not preemptive.

    Parameters
    ----------
    service : {"predicted", "prompt"}
        Service: the work of the prompt and the predicted answer, or, if answer lengths
        are unknown, of the prompt and one token.
    admission, backfill
        See `ListPolicy`.
    """
    if service not in list(WORK):
        raise ValueError(
            f"service = {service!r} but must be one of: {', '.join(WORK)}."
        )
    work = WORK[service]

    def rank(state: State, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        waited_s = state.now_s - ranks.arrival(state.requests, ids)
        return np.asarray(-waited_s / work(state, ids))

    return ListPolicy(MovingQueue(rank), admission, backfill)
