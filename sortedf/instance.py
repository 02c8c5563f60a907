"""Instances: requests, a KV budget, and the memory convention.

The memory convention, stated here and nowhere else. A request with prompt `s` and
answer `o` that starts in step `p` (`p >= a`, its arrival) runs without preemption in
the steps `p + 1, ..., p + o`. In step `p + j` it makes its `j`-th token and holds
`s + j` tokens of KV, the token made in that step included. It completes in step
`C = p + o`, and from step `C + 1` on it holds nothing. In every step `t`,

    sum of (s_i + t - p_i) over requests i with p_i < t <= C_i   <=   M.

Where prompts share prefixes, `sortedf.shared_prefixes` says what is held instead.
With blocks of `B` tokens, `s_i + t - p_i` is rounded up and `M` down to multiples of
`B`. The KV of a running request never shrinks, so usage falls at completions only,
and it is enough to check the steps `t = C_i`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import MAX_TOKENS, checked_int, unchecked
from sortedf.engine_model import EngineModel
from sortedf.errors import OversizeError
from sortedf.request_set import RequestSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from sortedf.shared_prefixes import SharedPrefixes


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Instance(RequestSet):
    """Requests that share one KV budget. Checked once, then read-only.

    Parameters
    ----------
    prefill : array_like of int, shape (n,)
        Prompt lengths `s`, in tokens, at least 1.
    decode : array_like of int, shape (n,)
        Answer lengths `o`, in tokens, at least 1.
    kv_budget : int, optional
        `M`: KV capacity of the engine, in tokens; with nothing else of the engine
        given, it is the papers'.
    arrival : array_like of int, shape (n,), optional
        First step after which a request may run, `a`; 0 for all (a backlog) if left
        out.
    engine : EngineModel, optional
        The engine with its budget, if it is not the papers' model.
    prefixes : SharedPrefixes, optional
        What prompts share, for an engine with `prefix_caching`; nothing if left out.

    Raises
    ------
    OversizeError
        If a request can never run: `s + o` above the budget (in whole blocks), or `s`
        above the engine's `max_batched_tokens`.
    ValueError, TypeError
        If an entry is out of range or no integer, or the engine has rules that a
        schedule of start steps cannot follow; the message names it.

    Examples
    --------
    >>> inst = Instance(prefill=[3, 1], decode=[2, 4], kv_budget=8)
    >>> inst.num_requests, inst.peak.tolist()
    (2, [5, 5])
    """

    kv_budget: int = field(default=None)  # type: ignore[assignment]
    engine: EngineModel = field(default=None)  # type: ignore[assignment]
    prefixes: SharedPrefixes | None = None
    # What prompts share depends on the engine's blocks: here it is in `prefixes`.
    prefix_ids: None = field(default=None, init=False)

    def __init__(
        self,
        prefill: ArrayLike,
        decode: ArrayLike,
        kv_budget: int | None = None,
        arrival: ArrayLike | None = None,
        engine: EngineModel | None = None,
        prefixes: SharedPrefixes | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "engine", planned_engine(kv_budget, engine))
        put(self, "kv_budget", self.engine.kv_budget)
        put(self, "prefixes", prefixes)
        RequestSet.__init__(self, prefill, decode, arrival)
        self._refuse_oversize()
        self._refuse_bad_prefixes()

    @classmethod
    def of_requests(
        cls,
        requests: RequestSet,
        kv_budget: int | None = None,
        *,
        engine: EngineModel | None = None,
    ) -> Instance:
        """Return the instance of requests and an engine; it shares their arrays.

        Parameters and errors are those of the class. What prompts share follows from
        the ids of their blocks, if the engine has `prefix_caching`.
        """
        engine = planned_engine(kv_budget, engine)
        instance = unchecked(
            cls,
            prefill=requests.prefill,
            decode=requests.decode,
            arrival=requests.arrival,
            kv_budget=engine.kv_budget,
            engine=engine,
            prefixes=None,
            prefix_ids=None,
        )
        instance._refuse_oversize()
        object.__setattr__(instance, "prefixes", requests.shared_prefixes(engine))
        return instance

    def __reduce__(self) -> tuple[type[Instance], tuple[Any, ...]]:
        # Default pickling would restore writeable, unchecked arrays.
        fields = (self.prefill, self.decode, None, self.arrival, self.engine)
        return Instance, (*fields, self.prefixes)

    def __repr__(self) -> str:
        online = "" if self.is_backlog else f", last arrival {int(self.arrival.max())}"
        papers = self.engine == EngineModel(self.kv_budget)
        engine = "" if papers else f", {self.engine}"
        return (
            f"Instance({self.num_requests} requests, kv_budget={self.kv_budget}"
            f"{online}{engine})"
        )

    @property
    def usable_kv(self) -> int:
        """The budget in whole blocks, in tokens."""
        return self.engine.usable_kv

    @property
    def peak(self) -> NDArray[np.int64]:
        """Peak KV of each request, in tokens: `s + o` in whole blocks."""
        return peak_kv_of(self.prefill, self.decode, self.engine.block_size)

    def replace(self, **changes: Any) -> Instance:
        """Copy with some fields changed, checked again."""
        if "engine" in changes:
            changes.setdefault("kv_budget", None)
        elif "kv_budget" in changes:
            changes["engine"] = replace(self.engine, kv_budget=changes["kv_budget"])
        return replace(self, **changes)

    def _refuse_bad_prefixes(self) -> None:
        """Raise if prefixes are of other requests, or longer than the prompts."""
        if self.prefixes is None:
            return
        if not self.engine.prefix_caching:
            raise ValueError("prefixes are for an engine with prefix_caching.")
        if len(self.prefixes.leaf) != self.num_requests:
            raise ValueError(
                f"prefixes has {len(self.prefixes.leaf)} leaves but there are "
                f"{self.num_requests} requests; they must be equally many."
            )
        tokens = self.prefixes.request_blocks * self.engine.block_size
        bad = tokens >= self.prefill
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                f"prefixes: request {i} shares {tokens[i]} tokens but its prompt has "
                f"{self.prefill[i]}; the last token is its own."
            )
        if not self.prefixes.num_below.all():  # a node that no request has
            every = np.arange(self.num_requests)
            object.__setattr__(self, "prefixes", self.prefixes.subset(every))

    def _refuse_oversize(self) -> None:
        ids = oversize_ids(self.prefill, self.decode, self.engine)
        if len(ids):
            s, o = self.prefill, self.decode
            rows = [(int(i), int(s[i]), int(o[i])) for i in ids[:5]]
            message = oversize_message("request", rows, len(ids), len(s), self.engine)
            raise OversizeError(message, tuple(ids.tolist()))


def planned_engine(kv_budget: int | None, engine: EngineModel | None) -> EngineModel:
    """Return the engine that is meant by a budget, an engine, or both.

    Raises
    ------
    ValueError, TypeError
        If they contradict each other, or schedules cannot follow the engine's rules.
    """
    if engine is None:
        return EngineModel(
            checked_int("kv_budget", kv_budget, minimum=1, maximum=MAX_TOKENS)
        )
    if not isinstance(engine, EngineModel):
        raise TypeError(f"engine must be an EngineModel but is {engine!r}.")
    if kv_budget not in (None, engine.kv_budget):
        raise ValueError(
            f"kv_budget = {kv_budget} but the engine has {engine.kv_budget}; give one "
            "of them."
        )
    if rules := engine.not_planned():
        raise ValueError(
            f"schedules, bounds and the checker do not know yet: {'; '.join(rules)}. "
            "Plan for it by sortedf.engine_plan, simulate, or give another engine."
        )
    return engine


def peak_kv_of(
    prefill: NDArray[np.int64], decode: NDArray[np.int64], block_size: int
) -> NDArray[np.int64]:
    """`s + o` rounded up to whole blocks, in tokens; shape (n,)."""
    return -(-(prefill + decode) // block_size) * block_size


def oversize_ids(
    prefill: NDArray[np.int64],
    decode: NDArray[np.int64],
    engine: EngineModel,
) -> NDArray[np.int64]:
    """Ids of the requests that can never run, ascending."""
    peak = peak_kv_of(prefill, decode, engine.block_size)
    too_large = peak > engine.usable_kv
    too_large |= prefill > engine.tokens_cap
    return np.flatnonzero(too_large)


def oversize_message(
    unit: str,
    rows: Sequence[tuple[int, int, int]],
    count: int,
    total: int,
    engine: EngineModel,
) -> str:
    """One-line message: how many requests can never run, the limits, the first ones.

    `rows` holds (number, s, o) of the first few; `unit` is what the number counts, such
    as "request" or "row".
    """
    named = "; ".join(
        f"{unit} {i} (s={s}, o={o}, needs {engine.round_up(s + o)})" for i, s, o in rows
    )
    more = ", ..." if count > len(rows) else ""
    caps = f"kv_budget={engine.kv_budget}"
    if engine.block_size > 1:
        caps += f" in blocks of {engine.block_size}"
    if engine.max_batched_tokens is not None:
        caps += f" and max_batched_tokens={engine.max_batched_tokens}"
    return f"{count} of {total} requests can never run with {caps}: {named}{more}"


def require_instance(given: object) -> None:
    """Raise a TypeError that names `Trace.to_instance` if this is no instance."""
    if not isinstance(given, Instance):
        raise TypeError(
            f"an Instance is needed, not {type(given).__name__}; a trace becomes one "
            "by trace.to_instance(kv_budget)[0]."
        )
