"""A search for the prices of the bound in seconds that vary with time and step length.

The bound and its proof are in `sortedf.engine_plan.timed_certificate`. For given ranges
of step lengths the least of each request at a few ratios is computed once, in floating
point; prices over time then follow from the works of the requests at their least, as in
the fluid schedule: shortest work first, and a slope of `-1 / work` while it is done.
The works are those at these prices, by a fixed-point iteration. The best certificate is
evaluated exactly there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.engine_plan.seconds_certificate import UNITS, coefficients
from sortedf.engine_plan.timed_certificate import ROWS, TimedCertificate, timed_prove
from sortedf.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sortedf.engine_plan.workload import EngineWorkload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

RATIOS = 12
"""Number of positive ratios."""

SPREAD = 1e3
"""The largest ratio over the smallest positive one."""

PIECES = 300
"""Largest number of pieces of the prices over time."""

ROUNDS = 6
"""Rounds of the fixed-point iteration."""

BEGINS = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Where a second range of step lengths may begin, as shares of the longest step."""

PARTS = ((0.5, 1), (0.5, 0), (0.2, 1), (0.2, 0))
"""Its share by own work, and which of requests and blocks has the rest."""

LEAST = 1e-12
"""Smallest work and longest step that are counted, in seconds."""

WEIGHT_SCALE = 2**30
"""Shares become integers over this before they become prices."""

Shares = tuple[tuple[float, ...], ...]
"""For each range its begin in seconds and its shares of the constant: own work,
requests, blocks, tokens."""


def timed_certificate(
    workload: EngineWorkload, mix: tuple[int, ...]
) -> TimedCertificate:
    """Find the best prices over time, and prove their bound.

    Parameters
    ----------
    workload : EngineWorkload
        One request or more.
    mix : tuple of int
        Weights of the step times.
    """
    prices = TimedPrices(workload, mix)
    return prices.certificate(prices.best())


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What ranges are worth at the best prices over time found for them.

    Attributes
    ----------
    ranges : tuple
        See `Shares`.
    total_s : float
        The bound, before arrivals are subtracted.
    work : float64 array, shape (n,)
        Work of each request from which the prices over time follow, in seconds.
    """

    ranges: Shares
    total_s: float
    work: Floats


class TimedPrices:
    """Evaluates ranges of step lengths; keeps the data common to all of them."""

    def __init__(self, workload: EngineWorkload, mix: tuple[int, ...]) -> None:
        self.workload, self.mix = workload, mix
        self.coefficient = coefficients(workload, mix)
        self.numbers = np.array(self.coefficient, dtype=np.float64) / UNITS
        alpha, beta, gamma, delta = self.numbers
        rules = workload.rules
        self.room = np.array([rules.seqs_cap, rules.num_blocks, rules.tokens_cap])
        most = min(rules.tokens_cap, int(workload.prefill.sum()))
        longest = max(beta, gamma) * most + delta * rules.usable_kv
        self.longest = max(float(longest), LEAST)
        lengths = np.stack([workload.prefill, workload.decode], axis=1)
        self.lengths, self.of = np.unique(lengths, axis=0, return_inverse=True)
        self.of = self.of.ravel()
        s, o = self.lengths.T.astype(np.float64)
        own = beta * s + gamma * o + delta * o * (s + o / 2)
        self.work = np.maximum(own, alpha / rules.seqs_cap)[self.of]
        total = float(self.work.sum())
        self.ratios = np.concatenate(
            [[0.0], np.geomspace(total / SPREAD, total, RATIOS)]
        )

    def best(self) -> Evaluated:
        """Own work alone, or two ranges if that is better."""
        best = self.evaluate(((0.0, 1.0, 0.0, 0.0, 0.0),))
        for ranges in self._tried():
            found = self.evaluate(ranges)
            if found.total_s > best.total_s:
                best = found
        return best

    def _tried(self) -> Iterator[Shares]:
        for begin in BEGINS if self.longest > LEAST else ():
            for own, by_requests in PARTS:
                rest = 1 - own
                second = (begin * self.longest, own, rest * by_requests)
                yield (
                    (0.0, 1.0, 0.0, 0.0, 0.0),
                    (*second, rest * (1 - by_requests), 0.0),
                )

    def evaluate(self, ranges: Shares) -> Evaluated:
        """Search for prices over time, for given ranges."""
        rules = self.workload.rules
        table = np.array(ranges)
        table[:, 1:] *= self.numbers[0]
        table[:, 2:] /= self.room
        ends = np.append(table[1:, 0], max(self.longest, table[-1, 0]))
        least = _least(
            self.lengths, self.ratios, self.numbers, table, ends, rules.block_size,
            rules.extra_slots, float(rules.tokens_cap), rules.eviction == "recompute",
            ROWS,
        )  # fmt: skip
        work, best = self.work, Evaluated(ranges, -np.inf, self.work)
        for _ in range(ROUNDS):
            times, values = self._over_time(work)
            low, at = _lowest(least, self.ratios, times, values)
            area = float(((values[1:] + values[:-1]) / 2 * np.diff(times)).sum())
            total = float(low[self.of].sum()) - area
            if total > best.total_s:
                best = Evaluated(ranges, total, work)
            work = np.sqrt(work * np.maximum(at[self.of], LEAST))
        return best

    def _over_time(self, work: NDArray[np.generic]) -> tuple[Floats, Floats]:
        """Return times and values of the prices over time that follow from works."""
        n = len(work)
        k = np.unique(np.round(np.linspace(0, n, min(n, PIECES) + 1)).astype(np.int64))
        done = np.concatenate([[0], np.cumsum(np.sort(work))])
        return done[k], n - k.astype(np.float64)

    def certificate(self, found: Evaluated) -> TimedCertificate:
        """Make prices exact, and prove what they are worth."""
        alpha, room = self.coefficient[0], self.room.tolist()
        ranges = []
        for begin, *shares in found.ranges:
            part = [
                alpha * int(share * WEIGHT_SCALE) // (WEIGHT_SCALE * limit)
                for share, limit in zip(shares, [1, *room], strict=True)
            ]
            ranges.append((int(begin * UNITS), *part))
        n = len(found.work)
        work = sorted(max(1, int(w * UNITS)) for w in found.work.tolist())
        _, values = self._over_time(found.work)
        knots, done, at = [], 0, 0
        for left in values.astype(np.int64).tolist():
            done += sum(work[at : n - left])
            at = n - left
            knots.append((done, left))
        ratios = [int(r * UNITS) for r in self.ratios.tolist()]
        claim = TimedCertificate(
            self.workload.sha256(),
            0,
            self.mix,
            self.coefficient,
            tuple(ranges),
            tuple(knots),
            tuple(dict.fromkeys(ratios)),
        )
        return replace(claim, bound=timed_prove(self.workload, claim))


@kernel
def _least_sum(b: float, d: float, begin: float, end: float) -> float:
    """Least `b / z + d z` over `begin <= z <= end`."""
    if b <= d * begin * begin:
        return b / begin + d * begin if begin > 0 else 0.0
    if b >= d * end * end:
        return b / end + d * end
    return float(2.0 * np.sqrt(b * d))


@kernel
def _token(
    ratio: float, alpha: float, own: float, held: float, behind: float, ahead: float,
    ranges: Floats, ends: Floats,
) -> float:  # fmt: skip
    """Share and length of the best step of a token; `ahead` is the work before it."""
    price = ratio + (alpha + own) * (behind + 0.5)
    best = np.inf
    for c in range(len(ranges)):
        if ends[c] > own:
            fixed = ranges[c, 2] + ranges[c, 3] * held + ranges[c, 4]
            begin = max(ranges[c, 0], own)
            chosen = _least_sum(ranges[c, 1] * own * price, ahead, begin, ends[c])
            best = min(best, fixed * price + chosen)
    return alpha * ahead + best


@kernel
def _prompt(
    s: float, alpha: float, beta: float, final: float, held: float, cap: float,
    ranges: Floats, ends: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Work of a prompt, and its sum of work times distance in its own steps."""
    each, last = np.inf, np.inf
    for c in range(len(ranges)):
        part = ranges[c, 1] / ends[c]
        each = min(each, ranges[c, 4] + part * beta)
        fixed = ranges[c, 2] + ranges[c, 3] * held + ranges[c, 4]
        last = min(last, fixed + part * min(final, ends[c]))
    each, last = beta + each, final + last
    work = each * (s - 1) + last
    moment = work * (alpha + beta * (s - 1) + final) / 2.0
    x = max(s - cap, 0.0)
    q = np.floor(x / cap)
    gaps = cap * q * (q + 1.0) / 2.0 + (x - q * cap) * (q + 1.0)
    moment += (each * (2.0 * alpha * gaps + final * x) - last * beta * x) / 2.0
    return work, moment


@kernel
def _least(
    lengths: Ints, ratios: Floats, numbers: Floats, ranges: Floats, ends: Floats,
    size: int, extra: int, cap: float, evicts: bool, most_rows: int,
) -> Floats:  # fmt: skip
    """Least sum of work times ratio plus distance; shape (requests, ratios)."""
    alpha, beta, gamma, delta = numbers
    last = min(beta, gamma)
    g = last if evicts else gamma
    found = np.empty((len(lengths), len(ratios)))
    for i in range(len(lengths)):
        s, o = lengths[i]
        held = float(-(-(s + extra) // size))
        before, moment = _prompt(
            float(s), alpha, beta, last + delta * s, held, cap, ranges, ends
        )
        for k in range(len(ratios)):
            found[i, k] = ratios[k] * before + moment
        rows = min(most_rows, o - 1)
        for row in range(rows):
            first = 2 + (o - 1) * row // rows
            n = 2 + (o - 1) * (row + 1) // rows - first
            own = g + delta * (s + first - 1)
            total = n * own + delta * (n * (n - 1) // 2)
            held = float(-(-(s + first - 1 + extra) // size))
            for k in range(len(ratios)):
                one = _token(
                    ratios[k], alpha, own, held, float(o - first), before + own / 2.0,
                    ranges, ends,
                )  # fmt: skip
                two = _token(
                    ratios[k], alpha, own, held, float(o - first - n + 1),
                    before + own * (n - 0.5), ranges, ends,
                )  # fmt: skip
                found[i, k] += ratios[k] * total + n * (one + two) / 2.0
            before += total
    return found


@kernel
def _lowest(
    least: Floats, ratios: Floats, times: Floats, values: Floats
) -> tuple[Floats, Floats]:
    """Lowest cost of each row of `least` over time, and its work there."""
    n, pieces, top = len(least), len(times) - 1, len(ratios) - 1
    low, work = np.full(n, times[pieces]), least[:, 1] / ratios[1]
    work -= least[:, 0] / ratios[1]
    for piece in range(pieces):
        slope = (values[piece] - values[piece + 1]) / (times[piece + 1] - times[piece])
        for end in range(2):
            ratio = values[piece + end] / slope
            j = min(np.searchsorted(ratios, ratio, side="right") - 1, top - 1)
            run = ratios[j + 1] - ratios[j]
            ratio = min(ratio, ratios[top])
            for i in range(n):
                rise = (least[i, j + 1] - least[i, j]) / run
                cost = least[i, j] + rise * (ratio - ratios[j])
                cost = times[piece + end] + slope * cost
                if cost < low[i]:
                    low[i], work[i] = cost, rise
    return low, work
