"""Plain vLLM with its own scheduler, for comparison."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.executor.prompts import random_prompt
from online.executor.vllm_engine import VllmSettings, start_engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from sortedf.instance import Instance


@dataclass(frozen=True, slots=True, eq=False)
class BaselineRun:
    """Result of plain vLLM on a backlog.

    Attributes
    ----------
    completion_step : int64 array, shape (n,)
        Step of each request's last token, from 1.
    completion_s : float64 array, shape (n,)
        The same in measured seconds since the first step began.
    preemptions : int
    num_steps : int
    """

    completion_step: NDArray[np.int64]
    completion_s: NDArray[np.float64]
    preemptions: int
    num_steps: int


def run_baseline(
    instance: Instance,
    settings: VllmSettings,
    prompts: list[list[int]] | None = None,
    *,
    played: Callable[..., AbstractContextManager[Any]] | None = None,
) -> BaselineRun:
    """Run a backlog in plain vLLM, in the requests' order.

    Parameters
    ----------
    instance : Instance
    settings : VllmSettings
    prompts : list of list of int, optional
        Token ids of each prompt; random ones if left out.
    played : callable, optional
        Replaces the device while the requests run:
        `with played(core, seconds_per_step, run_async=False)`.
    """
    llm, vllm = start_engine(settings, ours=False)
    n = instance.num_requests
    for i in range(n):
        params = vllm.SamplingParams(
            max_tokens=int(instance.decode[i]),
            ignore_eos=True,
            detokenize=False,
            temperature=0.0,
        )
        prompt = (
            random_prompt(i, int(instance.prefill[i]))
            if prompts is None
            else prompts[i]
        )
        llm.add_request(str(i), {"prompt_token_ids": prompt}, params)
    step, seconds = np.zeros(n, dtype=np.int64), np.zeros(n)
    preempted = _count_preemptions(llm.engine_core.engine_core.scheduler)
    num_steps, began = 0, time.perf_counter()
    core = llm.engine_core.engine_core
    with nullcontext() if played is None else played(core, 0.0, run_async=False):
        while llm.has_unfinished_requests():
            outputs = llm.step()
            num_steps += 1
            for output in outputs:
                if output.finished:
                    step[int(output.request_id)] = num_steps
                    seconds[int(output.request_id)] = time.perf_counter() - began
    llm.engine_core.shutdown()
    return BaselineRun(step, seconds, len(preempted), num_steps)


def _count_preemptions(scheduler: Any) -> list[str]:
    """Return a list to which the id of each preempted request is appended."""
    preempted: list[str] = []
    original = scheduler._preempt_request

    def note(request: Any, *args: Any, **kwargs: Any) -> None:
        preempted.append(request.request_id)
        original(request, *args, **kwargs)

    scheduler._preempt_request = note
    return preempted
