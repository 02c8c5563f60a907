"""DistBoost: a variant of UniBoost with separate prefill and decode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts import ranks
from online.policies.parts.boost import WINDOW, boost, make_gamma
from online.policies.parts.listed import fitting_head
from online.policies.parts.progress import Progress
from online.policies.parts.ranked_queue import RankedQueue
from online.policies.parts.responses import response_times
from online.policy import register_policy
from online.state import UNTIL_EVENT, Decision

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.policies.parts.boost import AdaptiveGamma, FixedGamma
    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]


class DistBoost:
    """Serves decoding requests first, and prompts by the boost of their work.

    Parameters
    ----------
    gamma : FixedGamma or AdaptiveGamma
    """

    def __init__(self, gamma: FixedGamma | AdaptiveGamma) -> None:
        self.gamma = gamma
        self._progress = Progress()
        self._queue = RankedQueue(self._score)

    def _score(self, requests: RequestView, ids: Ints) -> NDArray[np.float64]:
        work_s = self._progress.prompt_s(requests, ids)
        arrival_s: NDArray[np.float64] = ranks.arrival(requests, ids)
        return arrival_s - boost(work_s, self.gamma.value)

    def decide(self, state: State) -> Decision:
        """Start by score, without evictions."""
        retimed = self._progress.update(state)
        self._queue.update(state)
        if self.gamma.observe(response_times(state)) or retimed:
            self._queue.rank_again(state)
        start = fitting_head(state, self._queue)
        order = None if state.quiet else self._decode_first(state)
        if order is None and not start:
            return UNTIL_EVENT
        return Decision(order=order, start=start)

    def _decode_first(self, state: State) -> list[int] | None:
        """Order of running requests: decoding ones first; None if unchanged."""
        requests, running = state.requests, state.running
        left = requests.prefill[running] + requests.output_tokens[running]
        prefilling = left - requests.computed[running] > 1
        score = np.where(prefilling, self._score(requests, running), 0.0)
        order = np.lexsort((score, prefilling))
        if np.array_equal(order, np.arange(len(order))):
            return None
        ids: list[int] = running[order].tolist()
        return ids


@register_policy("distboost", about="decode first, prompts boosted", knows="nothing")
def distboost(gamma: float | None = None, window: int = WINDOW) -> DistBoost:
    """DistBoost: two queues, the decoding one always first.

    Prompts are ordered by `a_i - b_gamma(work of the prompt)`; a baseline of UniBoost's
    paper, in which long answers delay the prompts behind them.

    Parameters
    ----------
    gamma : float, optional
        In 1/seconds; the slope of the tail of response times if left out.
    window : int
        Response times to which it is fitted.
    """
    return DistBoost(make_gamma(gamma, window))
