"""Invariants of a run, checked from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from online.run_log import RunLog
    from sortedf.engine_model import EngineModel


class BrokenRunError(RuntimeError):
    """A log contradicts itself or the engine's rules: a defect of this package."""


def check_log(log: RunLog, rules: EngineModel) -> None:
    """Raise BrokenRunError if a run violates an invariant.

    Each request completes or is refused, time increases, the caps of a step are
    satisfied, and tokens and KV are conserved.
    """
    _check_requests(log)
    _check_steps(log, rules)
    _check_tokens(log, rules)
    _check_kv(log)


def _demand(holds: object, what: str) -> None:
    if not holds:
        raise BrokenRunError(f"a run broke an invariant: {what}.")


def _check_requests(log: RunLog) -> None:
    refused = np.zeros(len(log.decode), dtype=bool)
    refused[list(log.refused)] = True
    _demand((refused != log.completed).all(), "each request is completed or refused")
    done = log.completed
    start, first = log.start_step[done], log.first_token_step[done]
    in_order = (start > 0) & (start <= first) & (first <= log.completion_step[done])
    _demand(in_order.all(), "start, first and last token are in this order")
    enough = log.completion_step[done] - first >= log.decode[done] - 1
    _demand(enough.all(), "a step makes at most one token of a request")
    late = log.start_s[done] >= log.arrival_s[done]
    _demand(late.all(), "no request starts before it arrives")


def _check_steps(log: RunLog, rules: EngineModel) -> None:
    steps = log.steps
    _demand((steps.end_s > steps.begin_s).all(), "each step takes time")
    forward = steps.begin_s[1:] >= steps.end_s[:-1]
    _demand(forward.all(), "a step begins when the one before has ended")
    processed = steps.prefill_tokens + steps.num_decoding
    _demand((processed <= rules.tokens_cap).all(), "a step's tokens are within its cap")
    _demand(
        (processed >= steps.num_running).all(),
        "each scheduled request has a token processed",
    )
    _demand(
        (steps.output_tokens <= steps.num_running).all(),
        "only scheduled requests make tokens",
    )
    _demand((steps.num_running <= rules.seqs_cap).all(), "max_num_seqs is kept")
    _demand((steps.used_blocks <= rules.num_blocks).all(), "the KV budget is kept")
    held = steps.used_blocks * rules.block_size
    if not rules.prefix_caching:  # else a block may hold the KV of several
        _demand((steps.kv_tokens <= held).all(), "KV tokens fit the blocks in use")


def _check_tokens(log: RunLog, rules: EngineModel) -> None:
    done = log.completed
    output, wanted = int(log.steps.output_tokens.sum()), int(log.decode[done].sum())
    if rules.eviction == "recompute":
        _demand(output == wanted, f"answers have {wanted} tokens, {output} were made")
    _demand(output >= wanted, f"answers have {wanted} tokens, only {output} were made")
    processed = int((log.steps.prefill_tokens + log.steps.num_decoding).sum())
    once = int((log.prefill + log.decode - 1)[done].sum())
    again = int(log.recomputed_tokens.sum())
    found = int(log.cached_tokens.sum())
    _demand(
        processed == once + again - found,
        f"{once} tokens and {again} recomputed ones, of which {found} were found in "
        f"the cache, were processed as {processed}",
    )
    _demand(found == log.steps.cached_tokens.sum(), "cached tokens are counted alike")


def _check_kv(log: RunLog) -> None:
    """KV grows by processed and cached tokens, shrinks by completions and evictions.

    Blocks held by several requests count for each of them.
    """
    steps = log.steps
    done = log.completed
    freed = np.zeros(log.num_steps + 1, dtype=np.int64)
    held_last = (log.prefill + log.decode - 1)[done]
    np.add.at(freed, log.completion_step[done], held_last)  # free in the next step
    grown = steps.prefill_tokens + steps.num_decoding + steps.cached_tokens
    grown = grown - freed[:-1]
    lost = grown - np.diff(steps.kv_tokens, prepend=0)
    calm = (steps.preemptions + steps.evictions) == 0
    _demand((lost[calm] == 0).all(), "KV is lost only by preemption and eviction")
    _demand((lost >= 0).all(), "KV grows only by processed and cached tokens")
    _demand(
        lost.sum() == log.recomputed_tokens.sum(),
        "lost KV equals recomputed tokens",
    )
