"""A slow, obvious twin of the step engine: one request at a time, by vLLM's rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from online.state import Decision
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


@dataclass
class NaiveEngine:
    """Waiting and running requests, and a pool of blocks."""

    rules: EngineModel
    requests: dict[int, Request]
    waiting: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)

    @property
    def free(self) -> int:
        held = sum(self.requests[i].blocks for i in self.running)
        return self.rules.kv_budget // self.rules.block_size - held

    def blocks_for(self, tokens: int) -> int:
        return (tokens + self.rules.block_size - 1) // self.rules.block_size

    def stop(self, i: int) -> None:
        request = self.requests[i]
        request.recomputed += request.computed
        request.computed = request.blocks = 0
        request.preemptions += 1
        if self.rules.eviction == "restart":
            request.output_tokens = 0
        self.running.remove(i)
        self.waiting.append(i)

    def step(self, decision: Decision) -> dict[str, list[int]]:
        """Do what the decision says, then one step of the engine."""
        for i in decision.evict:
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
            need = self.blocks_for(request.computed + new + extra) - request.blocks
            while need > self.free and i in self.running:
                victim = self.running[-1]
                self.stop(victim)
                preempted.append(victim)
            if i not in self.running:
                break
            request.blocks += need
            served[i] = new
            tokens_left -= new
        started: list[int] = []
        for i in decision.start if not preempted else ():
            request = self.requests[i]
            todo = request.prefill + request.output_tokens
            seqs = self.rules.max_num_seqs
            if tokens_left == 0 or (seqs is not None and len(self.running) >= seqs):
                break
            if min(todo, longest) > tokens_left and not self.rules.chunked_prefill:
                break
            new = min(todo, longest, tokens_left)
            total = self.rules.kv_budget // self.rules.block_size + 1
            mark = int(self.rules.watermark * total) if self.running else 0
            if self.rules.reserve_prompt and self.blocks_for(todo) + mark > self.free:
                break
            if self.blocks_for(new + extra) + mark > self.free:
                break
            request.blocks = self.blocks_for(new + extra)
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
                request.blocks = 0
                self.running.remove(i)
                finished.append(i)
        return {"started": started, "preempted": preempted, "finished": finished}
