"""Response times and answer lengths of completed requests, from snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from online.state import State


def response_times(state: State) -> list[float]:
    """Seconds from arrival to last token of requests ended since the last decision.

    Empty if no request runs: then the clock may have advanced by an unknown idle time
    since the last token. A cancelled request with output tokens counts as completed,
    since a snapshot does not distinguish the two.
    """
    if not len(state.running):
        return []
    each = state.requests.each
    arrival_s, output_tokens = each.arrival_s, each.output_tokens
    return [state.now_s - arrival_s[i] for i in state.ended if output_tokens[i]]


def ended_lengths(state: State) -> list[int]:
    """Answer lengths of requests ended since the last decision, with output tokens."""
    output_tokens = state.requests.each.output_tokens
    return [output_tokens[i] for i in state.ended if output_tokens[i]]
