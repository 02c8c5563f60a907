"""`machines`: shortest answer first, on as many machines as requests can run at once.

At most `K` requests run in a step: `max_num_seqs`, or `max_batched_tokens` since each
running request takes a token, or as many of the smallest request as memory holds. A
schedule is therefore one of `K` identical machines, of which each request needs one in
each of `o` steps. On such machines shortest first has the least sum of completions,
whether or not requests may be interrupted (R. McNaughton, *Scheduling with Deadlines
and Loss Functions*, Management Science 6, 1959). With arrivals the bound holds less
their sum: setting all arrivals to 0 excludes no schedule.

If only `max_num_seqs` binds, mc-sf attains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.bounds.table import Bound, always, register_bound
from sortedf.certificate import instance_hash
from sortedf.machines_certificate import MachinesCertificate

if TYPE_CHECKING:
    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance


@register_bound(
    "machines",
    about="shortest answer first on as many machines as requests can run at once",
    cost="O(n log n)",
    quick=always,
)
def machines(instance: Instance, options: BoundOptions) -> Bound:
    """Sum of completions of shortest first on `K` machines; never below all answers."""
    least = exact_sum(instance.decode)
    value = max(_shortest_first(instance) - exact_sum(instance.arrival), least)
    return Bound(value, MachinesCertificate(instance_hash(instance), value))


def num_places(instance: Instance) -> int:
    """Return the largest number of requests in one step, `K`."""
    engine = instance.engine
    smallest = engine.round_up(int(instance.prefill.min(initial=2**31)) + 1)
    return min(engine.seqs_cap, engine.tokens_cap, instance.usable_kv // smallest)


def _shortest_first(instance: Instance) -> int:
    """Sum of completions: rank `r` from the longest down counts `1 + r // K` times.

    Sorted ascending, each machine gets every `K`-th answer; one delays itself and all
    behind it on its machine.
    """
    if not instance.num_requests:
        return 0
    answers = np.sort(instance.decode)[::-1]
    times = 1 + np.arange(len(answers)) // num_places(instance)
    return exact_sum(answers * times)
