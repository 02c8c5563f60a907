"""What a batch is expected to save by shared prefixes: prompt tokens in the cache."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sortedf.traces.prefix_ids import BlockIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sortedf.engine_model import EngineModel


@dataclass(frozen=True, slots=True)
class CachedPrompts:
    """Prompt tokens that are found in the cache, and need not be computed.

    Attributes
    ----------
    cached, total : int
        Tokens found, of all prompt tokens.
    """

    cached: int
    total: int

    @property
    def share(self) -> float:
        """Share of the prompt tokens, 0 where there are none."""
        return self.cached / self.total if self.total else 0.0

    def content(self) -> dict[str, float]:
        """Return both numbers and the share, as in `--json`."""
        return {"tokens": self.cached, "of": self.total, "share": self.share}


def expected_cached(
    requests: Iterable[tuple[Sequence[int], int]], rules: EngineModel
) -> CachedPrompts:
    """Count what an empty cache saves if requests run one after the other.

    As in vLLM whole blocks are found from a prompt's begin on, but not that of its last
    token, and blocks unused for longest are evicted first, of one request those at its
    end. Requests that run together share the same blocks, so that the count is close
    unless they fill the cache.

    Parameters
    ----------
    requests : iterable of (sequence of int, int)
        Token ids of each prompt, and its answer's expected length, in running order.
    rules : EngineModel
    """
    size = rules.block_size
    names = BlockIds(size)
    held: OrderedDict[int, int] = OrderedDict()  # blocks by name, unused longest first
    used = cached = total = 0
    for number, (prompt, answer) in enumerate(requests, start=1):
        ids = names.of(prompt)
        most = max(len(prompt) - 1, 0) // size
        found = 0
        while found < most and ids[found] in held:
            found += 1
        cached += found * size
        total += len(prompt)
        # All blocks of the answer have one name, which no block of a prompt has.
        others = -(-(len(prompt) + answer) // size) - len(ids)
        for name, blocks in ((-number, others), *((k, 1) for k in reversed(ids))):
            used += blocks - held.pop(name, 0)
            held[name] = blocks
        while used > rules.num_blocks:
            used -= held.popitem(last=False)[1]
    return CachedPrompts(cached, total)
