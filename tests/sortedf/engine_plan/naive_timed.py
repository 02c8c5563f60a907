"""A slow twin of the bound with prices over time: token by token, in floating point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.engine_plan.seconds_certificate import UNITS

if TYPE_CHECKING:
    from sortedf.engine_plan.timed_certificate import TimedCertificate
    from sortedf.engine_plan.workload import EngineWorkload


class Steps:
    """What a request pays for its tokens if it chooses the length of its steps."""

    def __init__(self, workload: EngineWorkload, claim: TimedCertificate) -> None:
        self.rules = workload.rules
        self.alpha, self.beta, self.gamma, self.delta = (
            c / UNITS for c in claim.coefficient
        )
        self.ranges = [[value / UNITS for value in row] for row in claim.ranges]
        most = min(self.rules.tokens_cap, sum(workload.prefill.tolist()))
        self.longest = max(self.beta, self.gamma) * most
        self.longest += self.delta * self.rules.usable_kv

    def own(self, s: int, j: int) -> float:
        """What token `j >= 2` costs by itself."""
        g = self.gamma
        if self.rules.eviction == "recompute":
            g = min(g, self.beta)
        return g + self.delta * (s + j - 1)

    def share(self, s: int, j: int, z: float) -> float:
        """Share of the constant of a step with `z` seconds of own work."""
        _, own_share, k, m, b = [row for row in self.ranges if row[0] <= z][-1]
        held = -(-(s + j - 1 + self.rules.extra_slots) // self.rules.block_size)
        return k + b + m * held + (own_share * self.own(s, j) / z if z else 0.0)

    def paid(
        self, s: int, o: int, lengths: list[float], ratio: float
    ) -> tuple[float, float]:
        """Sum of work times ratio plus distance of tokens 2 to `o`, and their time."""
        after = total = 0.0
        for j in range(o, 1, -1):
            z = max(lengths[j - 2], self.own(s, j))
            work = self.own(s, j) + self.share(s, j, z)
            total += work * (ratio + after + (self.alpha + z) / 2)
            after += self.alpha + z
        return total, after
