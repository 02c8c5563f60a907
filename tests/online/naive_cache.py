"""A slow, obvious twin of the step engine with prefix caching, by vLLM's rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from online.state import Decision
    from sortedf.engine_model import EngineModel
    from tests.online.naive import Request


@dataclass(eq=False)
class Block:
    """A KV block: who holds it, and what is in it if it can be found."""

    users: int = 0
    key: Hashable = None


@dataclass
class NaiveCachingEngine:
    """Waiting and running requests; free blocks in the order in which they are taken.

    Attributes
    ----------
    keys : dict of int to list
        Of each request what is in each block that it fills.
    cached : list of Block
        Blocks that can be found, in the order in which they were filled.
    """

    rules: EngineModel
    requests: dict[int, Request]
    keys: dict[int, list[Hashable]]
    waiting: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    free: list[Block] = field(default_factory=list)
    cached: list[Block] = field(default_factory=list)
    held: dict[int, list[Block]] = field(default_factory=dict)
    found: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = [Block() for _ in range(self.rules.num_blocks)]

    def find(self, i: int) -> list[Block]:
        """The first blocks of a request that are cached; not that of its last token."""
        request, blocks = self.requests[i], []
        most = (request.prefill + request.output_tokens - 1) // self.rules.block_size
        for key in self.keys[i][:most]:
            same = [block for block in self.cached if block.key == key]
            if not same:
                break
            blocks.append(same[0])
        return blocks

    def allocate(self, i: int, tokens: int, computed: int) -> None:
        """Give a request blocks for so many tokens, and let the full ones be found."""
        held = self.held[i]
        while len(held) < self.rules.blocks(tokens + self.rules.extra_slots):
            block = self.free.pop(0)
            if block in self.cached:
                self.cached.remove(block)
            block.users, block.key = 1, None
            held.append(block)
        for j in range(computed // self.rules.block_size,
                       tokens // self.rules.block_size):  # fmt: skip
            held[j].key = self.keys[i][j]
            self.cached.append(held[j])
        self.requests[i].blocks = len(held)

    def let_go(self, i: int) -> None:
        """Free the blocks of a request that no other one holds."""
        lost, kept = [], []
        for block in reversed(self.held.pop(i)):
            block.users -= 1
            if block.users == 0:
                (lost if block.key is None else kept).append(block)
        self.free = lost + self.free + kept
        self.requests[i].blocks = 0

    def stop(self, i: int) -> None:
        request = self.requests[i]
        self.let_go(i)
        request.recomputed += request.computed
        request.computed = 0
        request.preemptions += 1
        if self.rules.eviction == "restart":
            request.output_tokens = 0
        self.running.remove(i)
        self.waiting.append(i)

    def step(self, decision: Decision) -> dict[str, list[int]]:
        """Do what the decision says, then one step of the engine."""
        rules = self.rules
        for i in [i for i in self.running if i in decision.evict]:
            self.stop(i)
        if decision.order is not None:
            self.running = list(decision.order)
        left = rules.max_batched_tokens or 10**9
        several = len(self.running) + len(self.waiting) > 1
        longest = rules.long_prefill_token_threshold if several else 0
        longest = longest or 10**9
        preempted: list[int] = []
        served: dict[int, int] = {}
        for i in list(self.running):
            if i not in self.running or left == 0:
                continue
            request = self.requests[i]
            todo = request.prefill + request.output_tokens - request.computed
            new = min(todo, longest, left)
            slots = request.computed + new + rules.extra_slots
            while rules.blocks(slots) - request.blocks > len(self.free):
                victim = self.running[-1]
                self.stop(victim)
                preempted.append(victim)
                if victim == i:
                    break
            if i not in self.running:
                break
            self.allocate(i, request.computed + new, request.computed)
            served[i] = new
            left -= new
        started = []
        for i in decision.start if not preempted else ():
            request = self.requests[i]
            tokens = request.prefill + request.output_tokens
            blocks = self.find(i)
            done = len(blocks) * rules.block_size
            full = rules.max_num_seqs is not None and (
                len(self.running) >= rules.max_num_seqs
            )
            if (
                left == 0
                or full
                or (min(tokens - done, longest) > left and not rules.chunked_prefill)
            ):
                break
            new = min(tokens - done, longest, left)
            shared = sum(block.users > 0 for block in blocks)
            free = len(self.free) - (rules.watermark_blocks if self.running else 0)
            if rules.reserve_prompt and rules.blocks(tokens) - shared > free:
                break
            if rules.blocks(done + new + rules.extra_slots) - shared > free:
                break
            for block in blocks:
                if block.users == 0:
                    self.free.remove(block)
                block.users += 1
            self.held[i] = blocks
            self.allocate(i, done + new, done)
            request.computed = done
            self.found[i] = self.found.get(i, 0) + done
            self.waiting.remove(i)
            self.running.append(i)
            served[i] = new
            left -= new
            started.append(i)
        finished = []
        for i in list(self.running):
            request = self.requests[i]
            if i not in served:
                continue
            request.computed += served[i]
            if request.computed == request.prefill + request.output_tokens:
                request.output_tokens += 1
            if request.output_tokens == request.decode:
                self.let_go(i)
                self.running.remove(i)
                finished.append(i)
        return {"started": started, "preempted": preempted, "finished": finished}
