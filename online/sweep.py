"""Sweeps over policies, loads and seeds, on one core or on many machines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from online.arrivals import arrive
from online.hindsight import HindsightBound, hindsight_bound
from online.metrics import Metrics, measure
from online.named import Named
from online.prediction import make
from online.processes import without_current_folder
from online.simulator import simulate
from sortedf.errors import MissingExtraError
from sortedf.load import rate_of_load
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from online.run_log import RunLog
    from online.score_file import Scores
    from sortedf.engine_model import EngineModel
    from sortedf.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters common to all runs of a sweep.

    Attributes
    ----------
    trace : Trace
        Lengths, and recorded arrivals if they are replayed.
    rules : EngineModel
    step_time : StepTime
    arrivals : Named
        A kind of `online.arrivals.ARRIVALS`.
    noise : Named, optional
        Error model of `online.prediction.ERRORS` for the predicted lengths, which are
        the true ones if left out. They also serve as learned ranks.
    scores : Scores, optional
        Learned ranks, and predicted lengths if present, used instead.
    max_wait_s : float, optional
    trust_hints : str
        See `online.simulator.simulate`.
    clients : sequence of str, optional
        Client of each request.
    drop_oversize : bool
    bound : str
        As in `online.metrics.measure`.
    keep_logs : bool
        Whether outcomes include the whole log, which can be large.
    """

    trace: Trace
    rules: EngineModel
    step_time: StepTime = UNIT_STEPS
    arrivals: Named = field(default_factory=lambda: Named("poisson"))
    noise: Named | None = None
    scores: Scores | None = None
    max_wait_s: float | None = None
    trust_hints: str = "on"
    clients: Sequence[str] | None = None
    drop_oversize: bool = False
    bound: str = "none"
    keep_logs: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a sweep.

    Attributes
    ----------
    policy : Named
    load, rate : float, optional
        Offered load (see `sortedf.load`), or requests per second; neither if the
        arrivals need no rate.
    seed : int
        Seed of arrivals and prediction errors, which are the same for each policy.
    """

    policy: Named
    load: float | None = None
    rate: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RunOutcome:
    """A run with its metrics.

    Attributes
    ----------
    run : Run
    metrics : Metrics
    log : RunLog, optional
    was_interrupted : bool
        Whether some answer was interrupted by an eviction or preemption.
    bound_with_evictions : HindsightBound
        The bound of this run that holds with evictions, too.
    """

    run: Run
    metrics: Metrics
    log: RunLog | None
    was_interrupted: bool
    bound_with_evictions: HindsightBound

    def bounded_with_evictions(self) -> RunOutcome:
        """Return this with the weaker bound, which holds with evictions."""
        below = self.bound_with_evictions
        metrics = replace(
            self.metrics,
            lower_bound=below.total_s,
            gap=below.gap_of(self.metrics.total_latency),
            bound_method=below.method,
        )
        return replace(self, metrics=metrics)


def grid(
    policies: Iterable[Named],
    *,
    loads: Sequence[float | None] = (None,),
    rate: float | None = None,
    seeds: Iterable[int] = (0,),
) -> list[Run]:
    """Every policy at every load with every seed; the policy varies fastest."""
    every = product(loads, seeds, policies)
    return [Run(policy, load, rate, seed) for load, seed, policy in every]


def execute(setting: Setting, run: Run) -> RunOutcome:
    """Simulate and measure one run."""
    trace = _arrivals(setting, run)
    predicted = _predicted(setting, run)
    score = predicted if setting.scores is None else setting.scores.score
    log = simulate(
        trace,
        run.policy.name,
        setting.rules,
        step_time=setting.step_time,
        predicted=predicted,
        score=score,
        max_wait_s=setting.max_wait_s,
        options=run.policy.options,
        trust_hints=setting.trust_hints,
        clients=setting.clients,
        drop_oversize=setting.drop_oversize,
    )
    engine = setting.rules, setting.step_time
    metrics = measure(log, *engine, bound=setting.bound)
    weaker = hindsight_bound(log, *engine, setting.bound, evictions=True)
    kept = log if setting.keep_logs else None
    return RunOutcome(run, metrics, kept, len(log.pauses) > 0, weaker)


def sweep(
    setting: Setting,
    runs: Sequence[Run],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[RunOutcome]:
    """Execute many runs; the order of the outcomes is that of the runs.

    The bounds of all of them are of one kind: some hold only for runs without
    evictions, and these are not used if any of the runs had evictions.

    Parameters
    ----------
    setting : Setting
    runs : sequence of Run
    jobs : int, optional
        Parallel runs, by joblib; -1 uses every core. Within a `joblib.parallel_config`
        of Ray or Dask they are distributed over its machines. If left out, runs are
        executed sequentially in this process.
    progress : callable, optional
        Called as `progress(done, total)`.

    Raises
    ------
    MissingExtraError
        If `jobs` is given and joblib is not installed.
    """
    outcomes = []
    for outcome in _executed(setting, runs, jobs):
        outcomes.append(outcome)
        if progress is not None:
            progress(len(outcomes), len(runs))
    if any(outcome.was_interrupted for outcome in outcomes):
        return [outcome.bounded_with_evictions() for outcome in outcomes]
    return outcomes


def _executed(
    setting: Setting, runs: Sequence[Run], jobs: int | None
) -> Iterator[RunOutcome]:
    if jobs is None:
        yield from (execute(setting, run) for run in runs)
        return
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        raise MissingExtraError(
            "parallel sweeps need joblib: pip install 'sortedf[cluster]'"
        ) from error
    tasks = [delayed(execute)(setting, run) for run in runs]
    with without_current_folder():
        try:
            done: Iterator[RunOutcome] = Parallel(jobs, return_as="generator")(tasks)
        except ValueError:  # some backends do not support generators
            done = iter(Parallel(jobs)(tasks))
        yield from done


def _arrivals(setting: Setting, run: Run) -> Trace:
    rate = run.rate
    if run.load is not None:
        rate = rate_of_load(run.load, setting.trace, setting.rules, setting.step_time)
    kind = setting.arrivals
    return arrive(setting.trace, kind.name, rate=rate, seed=run.seed, **kind.options)


def _predicted(setting: Setting, run: Run) -> NDArray[np.int64]:
    if setting.scores is not None and setting.scores.length is not None:
        return setting.scores.length
    if setting.noise is None:
        return setting.trace.decode
    errors = make(setting.noise.name, **setting.noise.options)
    return errors(setting.trace.decode, np.random.default_rng(run.seed))
