"""List rules that sort by one key; ties go to the lower id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.methods.table import register_rule
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]


@register_rule(
    "fcfs",
    about="first come, first served: the default of serving engines",
    guarantee="none (unbounded)",
    cost="O(n log n)",
)
def fcfs(instance: Instance, options: Options) -> Ints:
    """Order by arrival."""
    return np.argsort(instance.arrival, kind="stable")


@register_rule(
    "mc-sf",
    about="shortest answer first (arXiv 2502.07115)",
    guarantee="none with unequal prompts (unbounded)",
    cost="O(n log n)",
)
def mc_sf(instance: Instance, options: Options) -> Ints:
    """Order by answer length `o`."""
    return np.argsort(instance.decode, kind="stable")


@register_rule(
    "total-size",
    about="smallest prompt plus answer first",
    guarantee="none (unbounded)",
    cost="O(n log n)",
)
def total_size(instance: Instance, options: Options) -> Ints:
    """Order by `s + o`."""
    return np.argsort(instance.prefill + instance.decode, kind="stable")


@register_rule(
    "svf",
    about="smallest memory-time volume first (arXiv 2606.22327)",
    guarantee="max(c, 1 + 2 c / 3), c = 2 / (1 - max peak / M), backlogs, backfill 0, "
    "no caps",
    cost="O(n log n)",
)
def svf(instance: Instance, options: Options) -> Ints:
    """Order by the volume `v`: Smith's rule for the fluid relaxation."""
    return np.argsort(volume(instance), kind="stable")


@register_rule(
    "lpt",
    about="longest answer first: for a short makespan, not for latency",
    guarantee="none",
    cost="O(n log n)",
)
def lpt(instance: Instance, options: Options) -> Ints:
    """Order by answer length `o`, longest first."""
    return np.argsort(-instance.decode, kind="stable")
