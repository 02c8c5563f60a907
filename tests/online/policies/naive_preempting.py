"""A slow, obvious twin of choosing requests to start and to evict for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sortedf.engine_model import EngineModel


@dataclass(frozen=True)
class Candidate:
    """A request as the choice sees it."""

    id: int
    tokens: int
    computed: int
    arrival_s: float
    score: float
    guarded: bool = False


def choose(
    running: list[Candidate],
    waiting: list[Candidate],
    rules: EngineModel,
    free_blocks: int,
    hysteresis: float,
    headroom: int,
) -> tuple[list[int], list[int], list[int]]:
    """Return which requests start, are evicted, and run on, in order.

    Each time all that would run is counted again.
    """

    def blocks(tokens: int) -> int:
        return -(-tokens // rules.block_size)

    def held(r: Candidate) -> int:
        return blocks(r.computed + rules.extra_slots) if r.computed else 0

    def after(r: Candidate) -> int:
        return blocks(r.tokens + rules.extra_slots)

    stay = sorted(running, key=lambda r: (not r.guarded, r.score, r.arrival_s, r.id))
    started: list[Candidate] = []
    all_blocks = free_blocks + sum(held(r) for r in running)
    tokens = rules.tokens_cap - sum(r.tokens - r.computed for r in running)

    def fits(new: Candidate, stay: list[Candidate]) -> bool:
        others = [*stay, *started]
        left = all_blocks - sum(after(r) for r in others)
        if not others:
            return after(new) <= left
        later = int(headroom / rules.block_size * (len(others) + 1))
        return (
            len(others) < rules.seqs_cap
            and after(new) + rules.watermark_blocks + later <= left
        )

    for new in waiting:
        if tokens < (1 if rules.chunked_prefill else new.tokens):
            break
        fewer = list(stay)
        while not fits(new, fewer):
            if (
                not fewer
                or fewer[-1].guarded
                or not fewer[-1].score > new.score + hysteresis
            ):
                fewer = []
                break
            gone = fewer.pop()
            tokens += gone.tokens - gone.computed
        else:
            stay = fewer
            started.append(new)
            tokens -= min(new.tokens, tokens)
            continue
        break
    kept = [r.id for r in stay]
    return [r.id for r in started], [r.id for r in running if r.id not in kept], kept
