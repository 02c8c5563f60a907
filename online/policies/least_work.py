"""Least own work in seconds first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online.policies.parts.listed import Admission, ListPolicy
from online.policies.parts.ranked_queue import RankedQueue
from online.policy import register_policy
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from online.policies.parts.ranks import Fields
    from online.state import State


class OwnWork:
    """Rank of requests by their own work in seconds.

    Own work is the time of a request's tokens alone plus its share of the constant part
    of its steps: the largest of its shares of `max_num_seqs`, KV and a step's tokens.
    """

    def __init__(self, rules: EngineModel, step_time: StepTime) -> None:
        self.rules, self.time = rules, step_time
        self.extra = rules.extra_slots
        self.room = (rules.seqs_cap, rules.usable_kv, rules.tokens_cap)

    def __call__(self, requests: Fields, ids: Any) -> Any:
        """Own work of requests by id; lower goes first."""
        s, o = requests.prefill[ids], 1.0 * requests.predicted[ids]
        read = s * o + o * (o - 1) / 2
        held = read + self.extra * o
        seqs, slots, tokens = self.room
        shares = np.maximum(np.maximum(o / seqs, held / slots), (s + o - 1) / tokens)
        time = self.time
        return (
            time.prefill_token_s * s
            + time.running_s * (o - 1)
            + time.kv_token_s * read
            + time.constant_s * shares
        )


class WorkQueue:
    """Waiting requests by own work, ranked again with new step times."""

    def __init__(self) -> None:
        self._rank = OwnWork(EngineModel.vllm(1), UNIT_STEPS)
        self._queue = RankedQueue(self._of, self._of)

    def update(self, state: State) -> None:
        """Apply what joined and left since the last decision."""
        retimed = state.step_time is not self._rank.time
        if retimed or state.rules is not self._rank.rules:
            self._rank = OwnWork(state.rules, state.step_time)
            self._queue.rank_again(state)
        self._queue.update(state)

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        return self._queue.head(count)

    def _of(self, requests: Fields, ids: Any) -> Any:
        return self._rank(requests, ids)


@register_policy(
    "least-work", about="least own work in seconds first", knows="a length"
)
def least_work(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Least own work first, by the step times; equals `svf` if only KV is limited.

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """
    return ListPolicy(WorkQueue(), admission, backfill)
