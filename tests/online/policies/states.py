"""Snapshots made by hand, for what a policy derives from one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online import step_kernels as k
from online.requests import RequestTable
from online.state import State
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS

if TYPE_CHECKING:
    from collections.abc import Iterable


class World:
    """Requests of which a test says which wait and which run; it keeps what changed."""

    def __init__(
        self, prefill: list[int], decode: list[int], rules: EngineModel | None = None
    ) -> None:
        n = len(prefill)
        self.table = RequestTable.of_arrays(
            np.array(prefill), np.array(decode), np.arange(n) * 0.5
        )
        self.rules = rules or EngineModel.vllm(1000)
        self.waiting: dict[int, None] = {}
        self.running: list[int] = []
        self.joined: list[int] = []
        self.left: list[int] = []
        self.step = 0

    def arrive(self, ids: Iterable[int]) -> None:
        for i in ids:
            self.waiting[i] = None
            self.joined.append(i)

    def start(self, ids: Iterable[int]) -> None:
        for i in ids:
            del self.waiting[i]
            self.left.append(i)
            self.running.append(i)

    def evict(self, i: int) -> None:
        self.running.remove(i)
        self.table.ints[k.PREEMPTIONS, i] += 1
        self.arrive([i])

    def make_tokens(self) -> None:
        """Let each running request make one; those that are done leave."""
        self.step += 1
        for i in list(self.running):
            self.table.ints[k.OUTPUT_TOKENS, i] += 1
            if self.table.ints[k.OUTPUT_TOKENS, i] == self.table.ints[k.DECODE, i]:
                self.running.remove(i)

    def look(self, **changes: Any) -> State:
        """Take a snapshot; what changed is told once."""
        joined, left = self.joined, self.left
        self.joined, self.left = [], []
        fields = {
            "step": self.step,
            "now_s": float(self.step),
            "running": np.array(self.running, dtype=np.int64),
            "requests": self.table.view,
            "free_blocks": self.rules.num_blocks,
            "joined": joined,
            "left": left,
            "quiet": False,
            "rules": self.rules,
            "step_time": UNIT_STEPS,
            "waiting_ids": self.waiting,
        }
        return State(**{**fields, **changes})
