"""Phase 2: convert a list of requests into start steps, event by event.

The rule: in each step the waiting requests that have arrived are tried in list order,
and each one that fits starts. A step ends when `backfill + 1` requests have been tried
without fitting, or none is left: with `backfill=0` the first request that does not fit
blocks all behind it (the papers' rule), with `backfill=w` up to `w` requests may be
passed over. A request fits if the schedule stays feasible in every future step beside
the running requests; a start, once set, does not change.

Where prompts share prefixes, a request holds what `sortedf.shared_prefixes` says. There
a start may also let others of its tree start earlier; they are tried in the next step.

Most steps change nothing and are skipped: the kernel computes the earliest start of a
waiting request, which later starts of others can only delay, and so the next step to
consider is the smallest earliest start in the window, or the next arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import MAX_TOKENS, checked_int, frozen_ints
from sortedf.kernels import NEVER, place_ranked, place_shared
from sortedf.schedule import Schedule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]


def place(instance: Instance, order: ArrayLike, *, backfill: int = 0) -> Schedule:
    """Place the requests of a list, each as early as the rule above allows.

    Parameters
    ----------
    instance : Instance
    order : array_like of int, shape (n,)
        Request ids, first to start first; each id once.
    backfill : int
        `w`: requests that do not fit and may be passed over in a step, at most.

    Returns
    -------
    Schedule
        Feasible by construction.

    Raises
    ------
    ValueError
        If `order` is no permutation of the request ids, or `backfill` is negative.

    Notes
    -----
    Checking one request costs `O(running)`; a list costs `O(n w running)` at most,
    and far less in practice, since a request is not tried before its earliest start.

    Examples
    --------
    >>> from sortedf import Instance, place
    >>> inst = Instance(prefill=[5, 6, 1], decode=[3, 2, 1], kv_budget=10)
    >>> place(inst, [0, 1, 2]).start.tolist()
    [0, 3, 3]
    >>> place(inst, [0, 1, 2], backfill=1).start.tolist()
    [0, 3, 0]
    """
    n = instance.num_requests
    backfill = checked_int("backfill", backfill, minimum=0, maximum=MAX_TOKENS)
    order = checked_order(order, n)
    if instance.prefixes is not None:
        start, _ = SharedPlacing(instance).place(order, backfill)
        return Schedule(instance, start)
    start = np.zeros(n, dtype=np.int64)
    # The kernel works on ranks: position in the list, 0 is first.
    arrival = instance.arrival[order]
    by_arrival = np.argsort(arrival, kind="stable")
    ranked = np.empty(n, dtype=np.int64)
    place_ranked(
        instance.prefill[order],
        instance.decode[order],
        arrival,
        by_arrival,
        instance.usable_kv,
        instance.engine.block_size,
        instance.engine.seqs_cap,
        instance.engine.tokens_cap,
        min(backfill, n),
        ranked,
    )
    start[order] = ranked
    return Schedule(instance, start)


class SharedPlacing:
    """Placement of many lists of an instance whose prompts share prefixes."""

    def __init__(self, instance: Instance) -> None:
        shared = instance.prefixes
        if shared is None:
            raise ValueError("the instance has no shared prefixes.")
        block = instance.engine.block_size
        self._instance = instance
        self._own = instance.prefill - shared.request_blocks * block
        self._leaf = shared.leaf
        self._nodes = (shared.parent, shared.blocks * block)

    def place(
        self, order: Ints, backfill: int, stop_above: int = NEVER
    ) -> tuple[Ints, int]:
        """Return start steps by request, and TEL.

        TEL is `NEVER`, and the start steps have no meaning, as soon as it is known to
        be above `stop_above`.
        """
        instance = self._instance
        arrival = instance.arrival[order]
        ranked = np.empty(len(order), dtype=np.int64)
        tel = place_shared(
            self._own[order],
            instance.decode[order],
            arrival,
            np.argsort(arrival, kind="stable"),
            self._leaf[order],
            *self._nodes,
            instance.usable_kv,
            instance.engine.block_size,
            instance.engine.seqs_cap,
            min(backfill, len(order)),
            stop_above,
            ranked,
        )
        start = np.empty_like(ranked)
        start[order] = ranked
        return start, tel


def checked_order(order: ArrayLike, n: int) -> Ints:
    """Return `order` as a read-only array; raise ValueError if it is no permutation."""
    ids = frozen_ints("order", order, minimum=0, maximum=max(n - 1, 0))
    if len(ids) != n:
        raise ValueError(f"order has {len(ids)} entries but there are {n} requests.")
    seen = np.bincount(ids, minlength=n)
    if n and seen.max() > 1:
        twice = int(np.argmax(seen > 1))
        raise ValueError(f"order names request {twice} more than once.")
    return ids
