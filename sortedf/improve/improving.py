"""Rounds of beam searches of increasing width, until a stop rule ends them.

With few requests each round ends by annealing the best schedule for a proportional
time: for them the beam search alone leaves a gap of up to a few percent.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import checked_int
from sortedf.improve.annealing import anneal
from sortedf.improve.beam import Beam, children_of, widest
from sortedf.improve.guide import make_guide
from sortedf.improve.objective import Objective
from sortedf.improve.pace import Pace
from sortedf.options import MAX_JOBS
from sortedf.schedule import Schedule, require_schedule
from sortedf.stop import SearchState, Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.improve.guide_kernels import Guide
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

FIRST_WIDTH = 7
"""Width of the beam in the first round."""

WIDER = 2
"""Factor by which the width grows from round to round."""

ANNEALED_UP_TO = 300
"""Requests up to which rounds end by annealing; above, wide beams gain as much."""

MOVES = 300
"""Moves of the annealing, over all windows, for each row of the beam."""

IN_TIME = 0.9
"""Largest share of the remaining time that a round is planned to take."""


@dataclass(frozen=True, slots=True, eq=False)
class Improvement:
    """Result of a search.

    Attributes
    ----------
    schedule : Schedule
        The best one, including the given start.
    found : bool
        Whether it differs from the start.
    rounds : int
    history : list of (float, int)
        Seconds and value of each improvement; first those of the start.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    schedule: Schedule
    found: bool
    rounds: int
    history: list[tuple[float, int]]
    interrupted: bool = False


def improve(
    instance: Instance,
    stop: Stop,
    *,
    start: Schedule | None = None,
    objective: Objective | None = None,
    seed: int = 0,
    jobs: int = 1,
    bound: int | None = None,
    on_better: Callable[[int, int | None], None] | None = None,
) -> Improvement:
    """Search for a better schedule.

    Parameters
    ----------
    instance : Instance
    stop : Stop
        Stop rule, see `sortedf.stop`. Without a start, at least one round is run.
    start : Schedule, optional
        A feasible schedule of the instance; the result is never worse.
    objective : Objective, optional
        TEL if left out.
    seed : int
        The same seed gives the same schedule, unless a time limit ends the search.
    jobs : int
        Threads; each searches with a seed of its own in every round.
    bound : int, optional
        A proven lower bound on the objective; the search ends when it is reached.
    on_better : callable, optional
        Called as `on_better(value, bound)` whenever a better schedule is found.

    Returns
    -------
    Improvement

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    Ctrl-C ends the search, and the best schedule so far is returned; if there is none,
    KeyboardInterrupt is raised as usual.

    Examples
    --------
    >>> from sortedf import Instance
    >>> from sortedf.improve import improve
    >>> from sortedf.stop import Rounds
    >>> inst = Instance(prefill=[5, 6, 1], decode=[3, 2, 1], kv_budget=10)
    >>> improve(inst, Rounds(1)).schedule.start.tolist()
    [2, 0, 0]
    """
    seed = checked_int("seed", seed, minimum=0, maximum=2**63 - 1)
    jobs = checked_int("jobs", jobs, minimum=1, maximum=MAX_JOBS)
    objective = objective or Objective()
    objective.weights(instance)  # raises if they are for other requests
    search = _Search(instance, stop, objective, bound, on_better)
    if start is not None:
        require_schedule(start)
        search.offer(start)
    try:
        search.run(seed, jobs)
    except KeyboardInterrupt:
        search.interrupted = True
        if search.best is None:
            raise
    assert search.best is not None
    return Improvement(
        search.best,
        search.best is not start,
        search.rounds,
        search.history,
        search.interrupted,
    )


@dataclass(slots=True, eq=False)
class _Search:
    """State of a search: the best schedule so far and its history."""

    instance: Instance
    stop: Stop
    objective: Objective
    bound: int | None
    on_better: Callable[[int, int | None], None] | None
    best: Schedule | None = None
    rounds: int = 0
    history: list[tuple[float, int]] = field(default_factory=list)
    interrupted: bool = False
    _pace: Pace = field(default_factory=Pace)
    _began: float = field(default_factory=time.perf_counter)

    def offer(self, schedule: Schedule) -> None:
        """Keep a schedule if it is better than the best so far."""
        rating = self.objective.rating(schedule)
        if self.best is not None and rating >= self.objective.rating(self.best):
            return
        self.best = schedule
        value = rating[1]
        self.history.append((self._elapsed(), value))
        if self.on_better is not None:
            self.on_better(value, self.bound)

    def run(self, seed: int, jobs: int) -> None:
        """Search until the stop rule or the bound ends it."""
        if self.instance.num_requests == 0:
            self.offer(Schedule(self.instance, []))
        if self.best is not None and self._over():
            return
        guide, order = make_guide(self.instance, self.objective)
        limit = widest(guide)
        width = min(FIRST_WIDTH, limit)
        seeds = np.random.SeedSequence(seed)
        while True:
            began = self._elapsed()
            for start in self._search(guide, width, seeds.spawn(jobs)):
                self._offer_ranked(start, order)
            for start in self._anneal(guide, order, width, seeds, jobs):
                self._offer_ranked(start, order)
            self.rounds += 1
            if self._over():
                return
            width = self._next_width(width, self._elapsed() - began, limit)
            if width == 0:
                return

    def _offer_ranked(self, start: Ints, order: Ints) -> None:
        by_id = np.empty_like(start)
        by_id[order] = start
        self.offer(Schedule(self.instance, by_id))

    def _search(
        self, guide: Guide, width: int, seeds: list[np.random.SeedSequence]
    ) -> list[Ints]:
        """Run a beam search with every seed."""
        return self._side_by_side(
            lambda seed: self._search_once(guide, width, seed), seeds
        )

    def _anneal(
        self,
        guide: Guide,
        order: Ints,
        width: int,
        seeds: np.random.SeedSequence,
        jobs: int,
    ) -> list[Ints]:
        """Anneal the best schedule with every seed, if requests are few."""
        if not 1 < len(order) <= ANNEALED_UP_TO or self._over():
            return []
        assert self.best is not None
        start = self.best.start[order]
        return self._side_by_side(
            lambda seed: anneal(guide, start, MOVES * width, seed, self._stopped),
            seeds.spawn(jobs),
        )

    def _search_once(self, guide: Guide, width: int, seed: int) -> Ints:
        beam = Beam(guide, width, seed)
        while not beam.done:
            beam.advance()
            rest_s = self._pace.seconds(children_of(1)) * beam.share_left
            if self._stopped() or self.stop.seconds_left(self._state()) < rest_s:
                beam.narrow()
        return beam.starts(earliest_end=self.objective.makespan)

    def _next_width(self, width: int, took_s: float, limit: int) -> int:
        """Return the next width, limited by the remaining time; 0 if none fits."""
        left = self.stop.seconds_left(self._state()) * IN_TIME
        wider = min(width * WIDER, limit)
        self._pace.learn(width * children_of(width), took_s)
        while wider and self._pace.seconds(wider * children_of(wider)) > left:
            wider -= 1
        return wider

    def _side_by_side(
        self, search: Callable[[int], Ints], seeds: list[np.random.SeedSequence]
    ) -> list[Ints]:
        """Call `search` with a number from every seed, in threads if several."""
        numbers = [int(seed.generate_state(1)[0]) for seed in seeds]
        if len(numbers) == 1:
            return [search(numbers[0])]
        with ThreadPoolExecutor(len(numbers)) as pool:
            try:
                return list(pool.map(search, numbers))
            except KeyboardInterrupt:
                self.interrupted = True  # ends the threads, which the pool joins
                raise

    def _over(self) -> bool:
        met = self.bound is not None and self._state().value == self.bound
        return met or self._stopped()

    def _stopped(self) -> bool:
        return self.interrupted or self.stop(self._state())

    def _state(self) -> SearchState:
        value = None
        if self.best is not None and not self.objective.excess(self.best):
            value = self.objective.value(self.best)
        return SearchState(self._elapsed(), self.rounds, value, self.bound)

    def _elapsed(self) -> float:
        return time.perf_counter() - self._began
