"""How long those that are done have taken, from the snapshots alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from online.state import State


def response_times(state: State) -> list[float]:
    """Seconds from arrival to last token of the requests done since the last decision.

    Empty where nothing runs any more: then the clock may have gone on, idle, since the
    last token, and nobody knows how far. Who was cancelled counts as done if it has
    made a token, since that cannot be told from here.
    """
    if not len(state.running):
        return []
    each = state.requests.each
    arrival_s, made = each.arrival_s, each.output_tokens
    return [state.now_s - arrival_s[i] for i in state.ended if made[i]]
