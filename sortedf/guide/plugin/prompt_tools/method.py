"""Shortest prompt first, for a backlog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.methods.table import register_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options


@register_rule(
    "short-prompt-list",
    about="shortest prompt first",
    guarantee="none",
    cost="O(n log n)",
)
def short_prompt_list(instance: Instance, options: Options) -> NDArray[np.int64]:
    """Order by prompt length."""
    return np.argsort(instance.prefill, kind="stable")
