"""Instances for hypothesis: small, tight and varied, arrivals and engine caps too."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

from sortedf import EngineModel, Instance
from sortedf.shared_prefixes import SharedPrefixes
from sortedf.traces.prefix_ids import PrefixIds

USUAL_EXAMPLES = 100
"""Examples of a property that asks for no number, in the profiles that draw all."""


def examples(number: int) -> settings:
    """Draw so many examples, or the profile's number where that is a small one."""
    usual = settings.default.max_examples
    return settings(
        max_examples=number if usual >= USUAL_EXAMPLES else min(number, usual)
    )


PAPER_MODEL = st.just(EngineModel(1))
"""Its budget is drawn with the requests."""


@st.composite
def engines(draw: st.DrawFn) -> EngineModel:
    return EngineModel(
        kv_budget=1,
        block_size=draw(st.sampled_from([1, 1, 2, 3, 4, 7])),
        max_num_seqs=draw(st.none() | st.integers(1, 6)),
        max_batched_tokens=draw(st.none() | st.integers(12, 40)),
    )


@st.composite
def shared_instances(
    draw: st.DrawFn,
    *,
    max_requests: int = 10,
    max_length: int = 10,
    arrivals: bool = True,
    min_requests: int = 1,
) -> Instance:
    """Draw prompts over an alphabet of two tokens, so that many begin alike."""
    n = draw(st.integers(min_requests, max_requests))
    prompt = st.lists(st.integers(0, 1), min_size=1, max_size=max_length)
    prompts = draw(st.lists(prompt, min_size=n, max_size=n))
    decode = draw(st.lists(st.integers(1, 6), min_size=n, max_size=n))
    arrival = [0] * n
    if arrivals and draw(st.booleans()):
        arrival = draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))
    block = draw(st.sampled_from([1, 1, 2, 3]))
    model = EngineModel(
        1, block, draw(st.none() | st.integers(1, 5)), prefix_caching=True
    )
    prefill = [len(own) for own in prompts]
    peaks = [model.round_up(s + o) for s, o in zip(prefill, decode, strict=True)]
    budget = draw(st.integers(max(peaks), 3 * max(peaks)))
    known: dict[tuple[int, ...], int] = {}
    lists = [
        [known.setdefault(tuple(own[: k + 1]), len(known)) for k in range(len(own))]
        for own in prompts
    ]
    shared = SharedPrefixes.of_prefix_ids(PrefixIds.of_lists(lists, 1), prefill, block)
    engine = replace(model, kv_budget=budget)
    return Instance(prefill, decode, None, arrival, engine, shared)


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    min_requests: int = 1,
    max_requests: int = 12,
    max_length: int = 12,
    arrivals: bool = True,
    engine: st.SearchStrategy[EngineModel] = PAPER_MODEL,
) -> Instance:
    """Draw an instance whose budget is between its largest request and all together."""
    n = draw(st.integers(min_requests, max_requests))
    length = st.integers(1, max_length)
    prefill = draw(st.lists(length, min_size=n, max_size=n))
    decode = draw(st.lists(length, min_size=n, max_size=n))
    late = st.integers(0, 3 * max_length)
    arrival = [0] * n
    if arrivals and draw(st.booleans()):
        arrival = draw(st.lists(late, min_size=n, max_size=n))
    model = draw(engine)
    if model.max_batched_tokens is not None:  # the longest prompt fits into a step
        room = max(model.max_batched_tokens, *prefill)
        model = replace(model, max_batched_tokens=room)
    peaks = [model.round_up(s + o) for s, o in zip(prefill, decode, strict=True)]
    smallest, largest = max(peaks), sum(peaks) + model.block_size
    budget = draw(st.integers(smallest, min(largest, 4 * smallest)))
    model = replace(model, kv_budget=budget)
    return Instance(prefill, decode, arrival=arrival, engine=model)
