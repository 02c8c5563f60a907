"""Certificates with prices over time, drawn at random: most of them prove little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from sortedf.engine_plan.seconds_certificate import MIX_SCALE, UNITS, coefficients
from sortedf.engine_plan.timed_certificate import TimedCertificate

if TYPE_CHECKING:
    from sortedf.engine_plan.workload import EngineWorkload


def _sums(values: list[int]) -> list[int]:
    return [sum(values[:k]) for k in range(len(values) + 1)]


@st.composite
def timed_claims(draw: st.DrawFn, workload: EngineWorkload) -> TimedCertificate:
    """Draw ranges, prices over time and ratios that no rule refuses."""
    forms = len(workload.step_times)
    mix = [0] * forms
    for _ in range(2):
        mix[draw(st.integers(0, forms - 1))] += MIX_SCALE // 2
    coefficient = coefficients(workload, tuple(mix))
    rules = workload.rules
    room = (1, rules.seqs_cap, rules.num_blocks, rules.tokens_cap)
    step = st.integers(1, 4 * UNITS)
    ranges = []
    for begin in _sums(draw(st.lists(step, max_size=2))):
        parts = draw(st.tuples(*[st.integers(0, 4)] * 4))
        share = [
            coefficient[0] * part // (max(sum(parts), 1) * limit)
            for part, limit in zip(parts, room, strict=True)
        ]
        ranges.append((begin, *share))
    pieces = draw(st.integers(1, 4))
    # Works in ascending order make a convex function.
    works = sorted(
        draw(st.lists(st.integers(1, 9 * UNITS), min_size=pieces, max_size=pieces))
    )
    falls = draw(st.lists(st.integers(1, 3), min_size=pieces, max_size=pieces))
    times = _sums([work * fall for work, fall in zip(works, falls, strict=True)])
    values = [sum(falls) - value for value in _sums(falls)]
    ratios = _sums(draw(st.lists(st.integers(1, 20 * UNITS), min_size=1, max_size=4)))
    return TimedCertificate(
        workload.sha256(),
        0,
        tuple(mix),
        coefficient,
        tuple(ranges),
        tuple(zip(times, values, strict=True)),
        tuple(ratios),
    )
