"""Arrival processes by name: recorded times, scaled to a rate, or random ones.

Every kind except "trace", "sessions" and "at-once" needs a rate. A kind is a function
of the trace, the rate and a random generator, with its own options.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from online.named import check_options
from sortedf.arrays import checked_int
from sortedf.registry import Table
from sortedf.traces.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.traces.trace import Trace

    Floats = NDArray[np.float64]
    Draw = Callable[..., Floats]


@dataclass(frozen=True, slots=True)
class ArrivalKind:
    """An arrival process.

    Attributes
    ----------
    draw : callable
        `draw(trace, rate, rng, **options)` returns the arrivals in seconds, by request.
    about : str
    needs_rate : bool
    keeps_sessions : bool
        Whether later turns of sessions follow the turns before them.
    """

    draw: Draw
    about: str
    needs_rate: bool
    keeps_sessions: bool = False


MAX_CV = 100
"""Largest coefficient of variation of gaps."""

ARRIVALS: Table[ArrivalKind] = Table("kind of arrivals")
"""Arrival processes by name."""


def _register(
    name: str, about: str, *, needs_rate: bool = True, keeps_sessions: bool = False
) -> Callable[[Draw], Draw]:
    def add(draw: Draw) -> Draw:
        kind = ArrivalKind(draw, about, needs_rate, keeps_sessions)
        ARRIVALS.register(name)(kind)
        return draw

    return add


def arrive(
    trace: Trace, kind: str, *, rate: float | None = None, seed: int = 0, **options: Any
) -> Trace:
    """Replace the arrival times of a trace; requests keep their order and lengths.

    Only "sessions" lets later turns follow the turns before them; by all others each
    request arrives at a time of its own.

    Parameters
    ----------
    trace : Trace
    kind : str
        A name in `ARRIVALS`.
    rate : float, optional
        Mean requests per second, up to the last arrival for recorded times. Not needed
        by "at-once", nor by "trace" and "sessions", which then keep the trace's times.
    seed : int
        The same seed gives the same arrivals.
    **options
        Options of that kind; an unknown one raises ValueError with the known ones.

    Raises
    ------
    ValueError
        If an argument is out of range; the message says what is allowed.

    Examples
    --------
    >>> from sortedf import Trace
    >>> trace = Trace([5, 6, 1], [3, 2, 1])
    >>> arrive(trace, "batches", rate=2.0, size=2).arrival_s.tolist()
    [0.0, 0.0, 1.0]
    """
    found = ARRIVALS.find(kind)
    seed = checked_int("seed", seed, minimum=0, maximum=2**63 - 1)
    if rate is None and found.needs_rate:
        raise ValueError(f"arrivals {kind!r} need a rate, in requests per second.")
    if rate is not None:
        _check_positive("rate", rate)
    draw = partial(found.draw, trace, rate, np.random.default_rng(seed))
    check_options("kind of arrivals", kind, draw, options)
    sessions = None
    if found.keeps_sessions and trace.sessions is not None:
        sessions = Sessions(trace.sessions.previous, trace.sessions.think_s)
    return replace(trace.with_arrivals(draw(**options)), sessions=sessions)


def default_kind(trace: Trace, *, has_rate: bool) -> str:
    """Return "trace" if times are recorded, else "poisson" with a rate or "at-once".

    "sessions" if later turns follow others and have no recorded times.
    """
    if trace.sessions is not None and not trace.sessions.is_recorded:
        return "sessions"
    if trace.arrival_s.any():
        return "trace"
    return "poisson" if has_rate else "at-once"


def mean_rate(trace: Trace) -> float:
    """Return the requests per second until the last arrival, as in `sortedf.load`.

    Raises
    ------
    ValueError
        If all arrive at once.
    """
    sessions = trace.sessions
    if sessions is not None and not sessions.is_recorded:
        raise ValueError(
            f"{trace.name or 'the trace'} has no arrival times of later turns, which "
            "follow others; choose arrivals 'sessions'."
        )
    last = float(trace.arrival_s.max())
    if not last:
        raise ValueError(
            f"{trace.name or 'the trace'} has no arrival times; choose other arrivals "
            "than 'trace', such as 'poisson'."
        )
    return trace.num_requests / last


@_register("trace", "recorded times, sped up to the rate", needs_rate=False)
def _replay(trace: Trace, rate: float | None, rng: np.random.Generator) -> Floats:
    own = mean_rate(trace)
    return trace.arrival_s * (1.0 if rate is None else own / rate)


@_register(
    "sessions",
    "turns follow each other; sessions begin at recorded times or independently",
    needs_rate=False,
    keeps_sessions=True,
)
def _begin(trace: Trace, rate: float | None, rng: np.random.Generator) -> Floats:
    """Let sessions begin so often that `rate` requests arrive per second.

    A request without a session is one by itself.
    """
    if rate is None:
        return trace.arrival_s
    n, first = trace.num_requests, np.ones(trace.num_requests, dtype=bool)
    if trace.sessions is not None:
        first = trace.sessions.is_first
    begun = int(first.sum())
    arrival_s = np.zeros(n)
    arrival_s[first] = _summed(rng.exponential(n / begun / rate, begun))
    return arrival_s


@_register("poisson", "independent arrivals")
def _poisson(trace: Trace, rate: float, rng: np.random.Generator) -> Floats:
    return _summed(rng.exponential(1 / rate, trace.num_requests))


@_register("gamma", "bursts: gaps from a Gamma distribution")
def _gamma(
    trace: Trace, rate: float, rng: np.random.Generator, cv: float = 4.0
) -> Floats:
    """Draw gaps with coefficient of variation `cv`; 1 is Poisson, near 0 is regular."""
    _check_positive("cv", cv)
    if cv > MAX_CV:
        raise ValueError(f"cv = {cv} but must be at most {MAX_CV}.")
    shape = 1 / cv**2
    return _summed(rng.gamma(shape, 1 / (shape * rate), trace.num_requests))


@_register("on-off", "Poisson arrivals in some periods, none in others")
def _on_off(
    trace: Trace,
    rate: float,
    rng: np.random.Generator,
    on_s: float = 30.0,
    off_s: float = 30.0,
) -> Floats:
    """Alternate between periods of exponential length, of means `on_s` and `off_s`.

    During on periods, requests arrive at `rate * (on_s + off_s) / on_s`.
    """
    _check_positive("on_s", on_s)
    _check_positive("off_s", off_s)
    n = trace.num_requests
    # In the time spent in on periods, arrivals are Poisson.
    times = _summed(rng.exponential(on_s / (on_s + off_s) / rate, n))
    ends = np.cumsum(rng.exponential(on_s, math.ceil(times[-1] / on_s) * 2 + 20))
    while ends[-1] < times[-1]:
        ends = np.append(ends, ends[-1] + rng.exponential(on_s))
    pauses = np.cumsum(rng.exponential(off_s, len(ends)))
    period = np.searchsorted(ends, times, side="right")
    return np.asarray(times + np.concatenate([[0.0], pauses])[period])


@_register("at-once", "a backlog: all requests at time 0", needs_rate=False)
def _at_once(trace: Trace, rate: float | None, rng: np.random.Generator) -> Floats:
    return np.zeros(trace.num_requests)


@_register("batches", "batches of `size` requests at regular intervals")
def _batches(
    trace: Trace, rate: float, rng: np.random.Generator, size: int = 2000
) -> Floats:
    size = checked_int("size", size, minimum=1, maximum=2**31 - 1)
    return np.asarray(np.arange(trace.num_requests) // size * (size / rate))


def _summed(gaps: Floats) -> Floats:
    """Arrivals with the given gap after each; the first is at 0."""
    return np.concatenate([[0.0], np.cumsum(gaps[:-1])])


def _check_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value} but must be a number above 0.")
