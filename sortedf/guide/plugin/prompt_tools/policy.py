"""Shortest prompt first, while requests arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from online.policies.parts.listed import Admission, ListPolicy, by_rank
from online.policy import register_policy

if TYPE_CHECKING:
    from online.requests import EachRequest, RequestView


def prompt_length(requests: RequestView | EachRequest, ids: int) -> float:
    """Rank of a request, or of an array of them; the lowest starts first."""
    return 1.0 * requests.prefill[ids]


@register_policy("short-prompt", about="shortest prompt first", knows="nothing")
def short_prompt(admission: Admission = "engine") -> ListPolicy:
    """Start the request with the shortest prompt, as soon as the engine has room."""
    return by_rank(prompt_length, admission, 0)
