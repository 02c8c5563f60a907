"""Least own work in seconds first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online.policies.parts.listed import Admission, ListPolicy, by_rank
from online.policy import register_policy

if TYPE_CHECKING:
    from online.policies.parts.ranks import Fields
    from online.state import Decision, State
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime


class OwnWork:
    """Rank of requests by their own work in seconds.

    Own work is the time of a request's tokens alone plus its share of the constant part
    of its steps: the largest of its shares of `max_num_seqs`, KV and a step's tokens.
    """

    def __init__(self, rules: EngineModel, step_time: StepTime) -> None:
        self.time = step_time
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


class LeastWork:
    """A list policy whose rank needs the engine and its step times.

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """

    def __init__(self, admission: Admission, backfill: int) -> None:
        by_rank(None, admission, backfill)  # raises for bad options before a run
        self._options = admission, backfill
        self._policy: ListPolicy | None = None

    def decide(self, state: State) -> Decision:
        """Start the least work that fits."""
        if self._policy is None:
            rank = OwnWork(state.rules, state.step_time)
            self._policy = by_rank(rank, *self._options)
        return self._policy.decide(state)


@register_policy(
    "least-work", about="least own work in seconds first", knows="a length"
)
def least_work(admission: Admission = "look-ahead", backfill: int = 0) -> LeastWork:
    """Least own work first, by the step times; equals `svf` if only KV is limited.

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """
    return LeastWork(admission, backfill)
