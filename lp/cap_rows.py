"""Rows of the engine's caps on a step, beside those of memory (`lp.dff`).

In every step at most `max_num_seqs` requests run and at most `max_batched_tokens`
tokens are processed: the prompt in a request's first step, one token in each later one.
The fluid bound's conditions on a row hold for these rows as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lp.dff import Numbers
    from sortedf.instance import Instance


@dataclass(frozen=True, slots=True)
class PlacesRow:
    """At most `limit` requests run."""

    limit: int

    def terms(
        self, instance: Instance, *, exact: bool = True
    ) -> tuple[Numbers, Numbers]:
        """Volumes `sum_j 1` and moments `sum_j (2 j - 1)`; shape (n,) each."""
        o = instance.decode.astype(_kind(exact))
        return o, o * o


@dataclass(frozen=True, slots=True)
class TokensRow:
    """At most `limit` tokens are processed."""

    limit: int

    def terms(
        self, instance: Instance, *, exact: bool = True
    ) -> tuple[Numbers, Numbers]:
        """Volumes `s + (o - 1)` and moments `s + sum_{j>1} (2 j - 1)`."""
        s = instance.prefill.astype(_kind(exact))
        o = instance.decode.astype(_kind(exact))
        return s + o - 1, s + o * o - 1


def cap_rows(instance: Instance) -> list[PlacesRow | TokensRow]:
    """Rows of the engine's caps."""
    engine = instance.engine
    rows: list[PlacesRow | TokensRow] = []
    if engine.max_num_seqs is not None:
        rows.append(PlacesRow(engine.max_num_seqs))
    if engine.max_batched_tokens is not None:
        rows.append(TokensRow(engine.max_batched_tokens))
    return rows


def _kind(exact: bool) -> Any:
    return object if exact else np.float64
