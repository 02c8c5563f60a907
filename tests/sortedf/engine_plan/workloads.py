"""Workloads for hypothesis: few requests, tight caps, steps of any shape."""

from __future__ import annotations

from hypothesis import strategies as st

from sortedf.engine_model import EngineModel
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.step_time import StepTime


@st.composite
def engine_rules(draw: st.DrawFn, lengths: list[tuple[int, int]]) -> EngineModel:
    """Draw rules under which each of the requests can run."""
    size = draw(st.sampled_from([1, 1, 2, 3]))
    extra = draw(st.booleans())
    chunked = draw(st.booleans())
    longest = max(s + o for s, o in lengths)
    smallest = -(-(longest - 1 + extra) // size)
    blocks = draw(st.integers(smallest, 2 * smallest + 2))
    least = 1 if chunked else longest
    cap = draw(st.none() | st.integers(least, longest + 3))
    seqs = draw(st.none() | st.integers(1, 3 if cap is None else min(cap, 3)))
    return EngineModel.vllm(
        blocks * size,
        size,
        seqs,
        cap,
        chunked_prefill=chunked,
        reserve_prompt=draw(st.booleans()),
        watermark=draw(st.sampled_from([0.0, 0.2])),
        counts_new_token=extra,
        eviction=draw(st.sampled_from(["recompute", "restart"])),
    )


@st.composite
def step_times(draw: st.DrawFn) -> StepTime:
    """Draw a step time of whole seconds."""
    few = st.integers(0, 4)
    return StepTime(*map(float, (draw(st.integers(1, 5)), *(draw(few) for _ in "bgd"))))


@st.composite
def workloads(
    draw: st.DrawFn, *, max_requests: int = 3, max_length: int = 3
) -> EngineWorkload:
    """Draw requests, an engine on which they can run, its step times and arrivals."""
    length = st.integers(1, max_length)
    lengths = draw(
        st.lists(st.tuples(length, length), min_size=1, max_size=max_requests)
    )
    prefill, decode = zip(*lengths, strict=True)
    late = st.integers(0, 3 * max_length)
    arrival = [0] * len(lengths)
    if draw(st.booleans()):
        arrival = draw(st.lists(late, min_size=len(lengths), max_size=len(lengths)))
    forms = draw(st.lists(step_times(), min_size=1, max_size=2))
    rules = draw(engine_rules(lengths))
    return EngineWorkload(prefill, decode, rules, tuple(forms), arrival)
