"""A slow, obvious twin of the step engine: one request at a time, by vLLM's rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from online import step_kernels as k

if TYPE_CHECKING:
    from collections.abc import Iterator

    from online.state import Decision
    from online.step_engine import StepEngine, StepRecord
    from sortedf.engine_model import EngineModel


@dataclass
class Request:
    """One request with what it has; blocks are counted, not remembered."""

    id: int
    prefill: int
    decode: int
    computed: int = 0
    output_tokens: int = 0
    blocks: int = 0
    preemptions: int = 0
    recomputed: int = 0
    found: int = 0


@dataclass
class NaiveEngine:
    """Waiting and running requests, and a pool of blocks."""

    rules: EngineModel
    requests: dict[int, Request]
    waiting: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)

    @property
    def num_blocks(self) -> int:
        return self.rules.kv_budget // self.rules.block_size

    @property
    def num_free(self) -> int:
        return self.num_blocks - sum(self.requests[i].blocks for i in self.running)

    def blocks_for(self, tokens: int) -> int:
        return (tokens + self.rules.block_size - 1) // self.rules.block_size

    def look_up(self, i: int) -> tuple[int, int]:
        """Tokens of a waiting request that are in memory; blocks of them in use."""
        return 0, 0

    def admit(self, i: int) -> None:
        """Let a request hold its blocks that are in memory."""

    def allocate(self, i: int, tokens: int, computed: int, slots: int) -> None:
        """Give a request the blocks of so many slots for its first tokens."""
        self.requests[i].blocks = self.blocks_for(slots)

    def release(self, i: int) -> None:
        """Take a request's blocks."""
        self.requests[i].blocks = 0

    def stop(self, i: int) -> None:
        request = self.requests[i]
        self.release(i)
        request.recomputed += request.computed
        request.computed = 0
        request.preemptions += 1
        if self.rules.eviction == "restart":
            request.output_tokens = 0
        self.running.remove(i)
        self.waiting.append(i)

    def step(self, decision: Decision) -> dict[str, list[int]]:
        """Do what the decision says, then one step of the engine."""
        for i in [i for i in self.running if i in decision.evict]:
            self.stop(i)
        if decision.order is not None:
            self.running = list(decision.order)
        tokens_left = self.rules.max_batched_tokens or 10**9
        extra = 1 if self.rules.counts_new_token else 0
        several = len(self.running) + len(self.waiting) > 1
        longest = self.rules.long_prefill_token_threshold if several else 0
        longest = longest or 10**9
        preempted: list[int] = []
        served: dict[int, int] = {}
        for i in list(self.running):
            if i not in self.running or tokens_left == 0:
                continue
            request = self.requests[i]
            todo = request.prefill + request.output_tokens - request.computed
            new = min(todo, longest, tokens_left)
            slots = request.computed + new + extra
            need = self.blocks_for(slots) - request.blocks
            while need > self.num_free and i in self.running:
                victim = self.running[-1]
                self.stop(victim)
                preempted.append(victim)
            if i not in self.running:
                break
            self.allocate(i, request.computed + new, request.computed, slots)
            served[i] = new
            tokens_left -= new
        started: list[int] = []
        for i in decision.start if not preempted else ():
            request = self.requests[i]
            tokens = request.prefill + request.output_tokens
            done, shared = self.look_up(i)
            seqs = self.rules.max_num_seqs
            if tokens_left == 0 or (seqs is not None and len(self.running) >= seqs):
                break
            new = min(tokens - done, longest)
            if new > tokens_left and not self.rules.chunked_prefill:
                break
            new = min(new, tokens_left)
            mark = int(self.rules.watermark * (self.num_blocks + 1))
            free = self.num_free - (mark if self.running else 0)
            if self.rules.reserve_prompt and self.blocks_for(tokens) - shared > free:
                break
            slots = done + new + extra
            if self.blocks_for(slots) - shared > free:
                break
            self.admit(i)
            self.allocate(i, done + new, done, slots)
            request.computed = done
            request.found += done
            self.waiting.remove(i)
            self.running.append(i)
            served[i] = new
            tokens_left -= new
            started.append(i)
        finished: list[int] = []
        for i in list(self.running):
            request = self.requests[i]
            if i not in served:
                continue
            request.computed += served[i]
            if request.computed == request.prefill + request.output_tokens:
                request.output_tokens += 1
            if request.output_tokens == request.decode:
                self.release(i)
                self.running.remove(i)
                finished.append(i)
        return {"started": started, "preempted": preempted, "finished": finished}


def compared_steps(
    engine: StepEngine, twin: NaiveEngine, decisions: list[Decision]
) -> Iterator[StepRecord]:
    """Run both engines on all requests, compare each step, and yield its record."""
    for i in twin.requests:
        engine.add(i)
        twin.waiting.append(i)
    for _ in range(400):
        if not engine.num_unfinished:
            break
        record = engine.step(0.0)
        expected = twin.step(decisions[-1])
        assert list(record.started) == expected["started"]
        assert list(record.preempted) == expected["preempted"]
        assert list(record.finished) == expected["finished"]
        for i, request in twin.requests.items():
            assert engine.table.ints[ROWS, i].tolist() == [
                request.output_tokens, request.computed, request.blocks,
                request.preemptions, request.recomputed, request.found,
            ]  # fmt: skip
        yield record


ROWS = [k.OUTPUT_TOKENS, k.COMPUTED, k.BLOCKS, k.PREEMPTIONS, k.RECOMPUTED, k.CACHED]
"""Rows of the engine's table, in the order of the twin's counts."""
