"""Engine rules for hypothesis, and a policy that does anything a policy may do."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from online.prompt_chains import PromptChains
from online.state import Decision
from sortedf.engine_model import EngineModel
from sortedf.traces.prefix_ids import BlockIds

if TYPE_CHECKING:
    from online.state import State
    from sortedf import Instance


def chains_of(prompts: list[list[int]], block_size: int) -> PromptChains:
    """Shared prefixes of prompts given as token ids."""
    blocks = BlockIds(block_size)
    keys = [np.array(blocks.of(own), dtype=np.int64) for own in prompts]
    return PromptChains(block_size, keys)


@st.composite
def rules_for(draw: st.DrawFn, instance: Instance) -> EngineModel:
    """Draw rules under which every request of an instance can run."""
    block = draw(st.sampled_from([1, 1, 2, 3, 8]))
    chunked = draw(st.booleans())
    longest = int((instance.prefill + instance.decode).max())
    cap = draw(st.none() | st.integers(1, 40))
    if cap is not None and not chunked:
        cap = max(cap, longest)
    peak = -(-(longest + 1) // block) * block
    return EngineModel.vllm(
        kv_budget=draw(st.integers(peak, 4 * peak + block)),
        block_size=block,
        max_num_seqs=draw(st.none() | st.integers(1, min(5, cap or 5))),
        long_prefill_token_threshold=draw(st.sampled_from([0, 0, 1, 3, 7])),
        max_batched_tokens=cap,
        chunked_prefill=chunked,
        reserve_prompt=draw(st.booleans()),
        watermark=draw(st.sampled_from([0.0, 0.0, 0.05, 0.2])),
        counts_new_token=draw(st.booleans()),
        eviction=draw(st.sampled_from(["recompute", "restart"])),
    )


class Restless:
    """Starts, evicts and reorders at random, but never for long without progress."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.decisions: list[Decision] = []
        self.calm = 0

    def decide(self, state: State) -> Decision:
        running = state.running.tolist()
        waiting = sorted(state.waiting.tolist())
        self.calm -= 1
        if self.calm < 0 or self.random.random() < 0.7:
            self.calm = self.random.randint(5, 60)
            evict: list[int] = []
        else:
            evict = [i for i in running if self.random.random() < 0.3]
        order = [i for i in running if i not in evict]
        self.random.shuffle(order)
        self.random.shuffle(waiting)
        start = waiting if self.random.random() < 0.8 or not running else []
        decision = Decision(
            evict=evict,
            order=order if self.random.random() < 0.5 else None,
            start=start,
        )
        self.decisions.append(decision)
        return decision
