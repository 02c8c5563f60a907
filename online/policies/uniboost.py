"""UniBoost (arXiv 2606.18431): one queue, boosted by attained service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from online.policies.parts import ranks
from online.policies.parts.boost import (
    WINDOW,
    AdaptiveGamma,
    FixedGamma,
    boost,
    make_gamma,
)
from online.policies.parts.mem_guard import MemGuard, NoGuard
from online.policies.parts.preempting import Preempting
from online.policies.parts.progress import Progress
from online.policies.parts.responses import response_times
from online.policy import register_policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]


class Boosted:
    """Scores `phi = a - b_gamma(w)`: arrival minus the boost of effective work.

    Parameters
    ----------
    gamma : FixedGamma or AdaptiveGamma
    guard_tokens : int, optional
        MemGuard's `k`; without MemGuard if left out.
    """

    def __init__(
        self, gamma: FixedGamma | AdaptiveGamma, guard_tokens: int | None
    ) -> None:
        self.gamma = gamma
        self._progress = Progress()
        self._guard: MemGuard | NoGuard = (
            NoGuard(self._progress)
            if guard_tokens is None
            else MemGuard(self._progress, guard_tokens)
        )

    def update(self, state: State) -> bool:
        """Update from a snapshot; return whether gamma, and so every score, changed."""
        retimed = self._progress.update(state)
        self._guard.update(state, retimed)
        return self.gamma.observe(response_times(state)) or retimed

    def score(self, requests: RequestView, ids: Ints) -> NDArray[np.float64]:
        """`phi`, in seconds."""
        work_s = self._guard.coarse_s(requests, ids)
        arrival_s: NDArray[np.float64] = ranks.arrival(requests, ids)
        return arrival_s - boost(work_s, self.gamma.value)

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Whether MemGuard protects each request."""
        return self._guard.protected(requests, ids)

    def same_until(self, state: State) -> float:
        """Step before which no score changes."""
        return self._guard.same_until(state)


@register_policy(
    "uniboost",
    about="boost by attained service, guarded (arXiv 2606.18431)",
    knows="nothing",
)
def uniboost(
    gamma: float | None = None,
    hysteresis: float = 0.0,
    guard_tokens: int = 64,
    window: int = WINDOW,
    headroom: int = 0,
) -> Preempting:
    """UniBoost with MemGuard; gamma is adaptive (gamma-Ada) unless given.

    Least `phi_i(t) = a_i - b_gamma(w_i(t))` first, whether a request waits or runs;
    `w = max(attained service, work of the prompt)`, in seconds. First come, first
    served for an infinite gamma, least attained service for gamma to 0. If gamma is the
    decay rate of the response times' tail, it is tail optimal on one machine with free
    preemption; here MemGuard bounds the evictions of a request logarithmically.

    Parameters
    ----------
    gamma : float, optional
        In 1/seconds.
    hysteresis : float
        Difference in score, in seconds, by which a waiting request must precede one
        evicted for it.
    guard_tokens : int
        MemGuard's `k`: the first threshold of attained service, in output tokens.
    window : int
        Response times to which an adaptive gamma is fitted.
    headroom : int
        Steps of growth for which blocks stay free when a request starts.
    """
    scorer = Boosted(make_gamma(gamma, window), guard_tokens)
    return Preempting(scorer, hysteresis=hysteresis, headroom=headroom)


@register_policy("uniboost-base", about="UniBoost without MemGuard", knows="nothing")
def uniboost_base(
    gamma: float | None = None,
    hysteresis: float = 0.0,
    window: int = WINDOW,
    headroom: int = 0,
) -> Preempting:
    """UniBoost's unified queue without MemGuard.

    Options as for `uniboost`.
    """
    scorer = Boosted(make_gamma(gamma, window), None)
    return Preempting(scorer, hysteresis=hysteresis, headroom=headroom)
