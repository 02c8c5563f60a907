"""Latency of a request that runs alone in the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def alone_s(
    prefill: Ints, decode: Ints, rules: EngineModel, step_time: StepTime
) -> Floats:
    """Seconds from start to last token of each request, alone in the engine.

    The prompt takes `ceil(s / cap)` steps, the last of which makes the first token,
    and each further token takes one. A last chunk of one token counts as decoding.

    Parameters
    ----------
    prefill, decode : int64 arrays, shape (n,)
    rules : EngineModel
    step_time : StepTime

    Returns
    -------
    float64 array, shape (n,)
    """
    s, o = prefill.astype(np.float64), decode.astype(np.float64)
    cap = float(rules.tokens_cap)
    chunks = np.ceil(s / cap)
    last_is_one = s - (chunks - 1) * cap == 1
    # KV tokens read in the steps: cap, 2 cap, ..., s, s + 1, ...
    kv_prefill = cap * (chunks - 1) * chunks / 2 + s
    kv_decode = (o - 1) * s + (o - 1) * o / 2
    return np.asarray(
        step_time.constant_s * (chunks + o - 1)
        + step_time.prefill_token_s * (s - last_is_one)
        + step_time.running_s * (o - 1 + last_is_one)
        + step_time.kv_token_s * (kv_prefill + kv_decode)
    )
