"""Work of a request for the whole engine, in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def engine_work_s(
    prefill: Ints, volume: Floats, rules: EngineModel, time: StepTime
) -> Floats:
    """Time for which each request alone would keep the engine busy, in seconds.

    Its share of the cache, `v / M`, times the duration of a step with a full cache,
    plus the processing of its prompt: the shared KV cache is one machine, as in the
    fluid bound.

    Parameters
    ----------
    prefill : int64 array
    volume : float64 array
        Memory-time volumes, in token steps.
    rules : EngineModel
    time : StepTime
    """
    budget = rules.num_blocks * rules.block_size
    step_s = time.seconds(0, 0, budget)
    return np.asarray(volume / budget * step_s + prefill * time.prefill_token_s)
