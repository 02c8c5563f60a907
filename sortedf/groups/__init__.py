"""Phase 1 of Sorted-F: selectors of the next group."""

from sortedf.groups.co_start import CoStart
from sortedf.groups.exact import Exact
from sortedf.groups.exact_dp import exact_dp
from sortedf.groups.local_swap import local_swap
from sortedf.groups.pool import Pool, Selector, f_metric
from sortedf.groups.quantile_greedy import quantile_greedy
from sortedf.groups.table import SELECTORS, register_selector

__all__ = [
    "SELECTORS",
    "CoStart",
    "Exact",
    "Pool",
    "Selector",
    "exact_dp",
    "f_metric",
    "local_swap",
    "quantile_greedy",
    "register_selector",
]
