"""A real vLLM engine with the interface of the step engine."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from online import step_kernels as k
from online.executor.chain_prompts import ChainPrompts
from online.executor.prompts import random_prompt
from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_errors import settings_refused, start_failed
from online.executor.vllm_version import require_vllm
from online.processes import without_current_folder
from sortedf.engine_model import VLLM_RULES, EngineModel
from sortedf.errors import OversizeError, SortedfError
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from online.requests import RequestTable
    from online.state import Policy
    from online.step_engine import StepRecord

IN_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
"""Environment of an engine in this process, whose state can be inspected."""

CPU_SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    **IN_PROCESS,
}
"""Environment of an engine with the tiny model: small and steady."""

TINY = {"load_format": "dummy", "dtype": "float32", "enforce_eager": True}
"""Arguments of an engine with the tiny model: random weights."""


class EngineError(SortedfError, RuntimeError):
    """A real engine failed while it ran."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """Settings of the engine; `model` None is a tiny random Llama.

    A real model runs with vLLM's defaults, on the platform that vLLM is installed for.

    Attributes
    ----------
    engine : EngineModel
        With the rules of vLLM's scheduler; whole blocks of its budget are used.
    model : str, optional
        Folder or hub name.
    max_model_len : int
        Longest prompt and answer together, in tokens.

    Raises
    ------
    ValueError
        If the engine has rules that vLLM does not have, or that it refuses.
    """

    engine: EngineModel
    model: str | None = None
    max_model_len: int = 4096

    def __post_init__(self) -> None:
        engine, longest = self.engine, self.max_model_len
        for name in ("counts_new_token", "eviction"):
            if getattr(engine, name) != VLLM_RULES[name]:
                raise ValueError(
                    f"vLLM has no engine with {name} = {getattr(engine, name)!r}."
                )
        # vLLM 0.32.0, config/scheduler.py:312
        if not engine.chunked_prefill and engine.tokens_cap < longest:
            raise ValueError(
                f"max_batched_tokens = {engine.max_batched_tokens} but must be at "
                f"least the longest request, {longest} tokens, without chunked prefill."
            )
        # config/scheduler.py:352
        if engine.long_prefill_token_threshold > longest:
            raise ValueError(
                "long_prefill_token_threshold = "
                f"{engine.long_prefill_token_threshold} but must be at most the "
                f"longest request, {longest} tokens."
            )


class VllmEngine:
    """Runs the requests of a table in vLLM, by a policy of this package.

    The engine lives in this process and schedules synchronously, so that each call of
    `step` is one step of it. Answers have exactly the lengths in the table.

    Parameters
    ----------
    table : RequestTable
        Lengths; prompts are random tokens, with the shared prefixes of the table's
        chains, unless `prompts` gives them.
    policy : Policy
    settings : VllmSettings
    step_time : StepTime
        For policies that count service in seconds.
    prompts : list of list of int, optional
        Token ids of each prompt.

    Attributes
    ----------
    step_s : list of float
        Measured duration of each step in seconds.
    """

    def __init__(
        self,
        table: RequestTable,
        policy: Policy,
        settings: VllmSettings,
        *,
        step_time: StepTime = UNIT_STEPS,
        prompts: list[list[int]] | None = None,
    ) -> None:
        self._now_s = 0.0
        self._llm, self._vllm = start_engine(settings)
        self._scheduler: Any = self._llm.engine_core.engine_core.scheduler
        self.rules: EngineModel = self._scheduler.rules
        self.use(table, policy, step_time=step_time, prompts=prompts)

    def use(
        self,
        table: RequestTable,
        policy: Policy,
        *,
        step_time: StepTime = UNIT_STEPS,
        prompts: list[list[int]] | None = None,
    ) -> None:
        """Continue with another table and another policy, once all requests are done.

        The prefix cache is reset.
        """
        if self.num_unfinished:
            raise RuntimeError(f"{self.num_unfinished} requests are not done yet.")
        self._scheduler.kv_cache_manager.reset_prefix_cache()
        self.table = table
        self._prompts = prompts
        self._chains: ChainPrompts | None = None
        if table.chains is not None:
            self._chains = ChainPrompts(table, table.chains)
        self.step_s: list[float] = []
        self._scheduler.attach(
            table,
            policy,
            step_time=step_time,
            clock=lambda: self._now_s,
            id_of=lambda request: int(request.sampling_params.extra_args["table_id"]),
            recording=True,
        )

    @property
    def core(self) -> Any:
        """The engine core of vLLM, in this process."""
        return self._llm.engine_core.engine_core

    @property
    def num_unfinished(self) -> int:
        """Requests that wait or run."""
        return int(self._scheduler.get_num_unfinished_requests())

    def add(self, i: int) -> None:
        """Add request `i` of the table; OversizeError if it can never run."""
        prefill, decode = self.table.ints[[k.PREFILL, k.DECODE], i].tolist()
        reason = self.rules.refusal(prefill, decode)
        if reason is not None:
            raise OversizeError(f"request {i} {reason}.", (i,))
        params = self._vllm.SamplingParams(
            max_tokens=decode,
            ignore_eos=True,
            detokenize=False,
            temperature=0.0,
            extra_args={"table_id": i},
        )
        self._llm.add_request(str(i), {"prompt_token_ids": self._prompt(i)}, params)

    def cancel(self, i: int) -> None:
        """Cancel request `i`, whether it waits or runs."""
        self._llm.abort_request([str(i)])

    def step(self, now_s: float) -> StepRecord:
        """Run one step of the engine at time `now_s`.

        Raises
        ------
        EngineError
            If the engine raises; it cannot be used afterwards.
        """
        self._now_s = now_s
        began = time.perf_counter()
        try:
            outputs = self._llm.step()
        except Exception as error:
            raise EngineError(
                f"the engine failed in step {self._scheduler.host.num_steps} with "
                f"{self.num_unfinished} requests unfinished: {error!r}"
            ) from error
        took = time.perf_counter() - began
        if self._chains is not None:
            for out in outputs:
                if out.finished:
                    answer = out.outputs[0].token_ids
                    self._chains.ended(
                        int(out.request_id), out.prompt_token_ids, answer
                    )
        record: StepRecord = self._scheduler.take_record()
        if not record.is_empty:
            self.step_s.append(took)
        return record

    def close(self) -> None:
        """Stop the engine and free its memory."""
        self._llm.engine_core.shutdown()

    def _prompt(self, i: int) -> list[int]:
        if self._prompts is not None:
            return self._prompts[i]
        if self._chains is not None:
            return self._chains.write(i)
        return random_prompt(i, int(self.table.ints[k.PREFILL, i]))


def start_engine(
    settings: VllmSettings, *, ours: bool = True, run_async: bool = False
) -> tuple[Any, Any]:
    """Start an engine with this package's scheduler, or plain; return it and vllm.

    With `run_async` it uses the scheduler class for async scheduling, of this package
    or vLLM's; vLLM itself disables the rest of async scheduling on a CPU.
    """
    is_tiny = settings.model is None
    for name, value in (CPU_SETTINGS if is_tiny else IN_PROCESS).items():
        os.environ.setdefault(name, value)
    vllm = require_vllm()
    from vllm.engine.arg_utils import EngineArgs

    scheduler: Any = None
    if ours:
        from online.executor import vllm_scheduler as classes

        scheduler = (
            classes.AsyncPolicyScheduler if run_async else classes.PolicyScheduler
        )
    elif run_async:
        from vllm.v1.core.sched.async_scheduler import AsyncScheduler

        scheduler = AsyncScheduler

    engine = settings.engine
    own: dict[str, Any] = dict(
        skip_tokenizer_init=True,
        block_size=engine.block_size,
        num_gpu_blocks_override=engine.num_blocks + 1,  # one is the null block
        max_model_len=settings.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_batched_tokens,
        enable_chunked_prefill=engine.chunked_prefill,
        long_prefill_token_threshold=engine.long_prefill_token_threshold,
        scheduler_reserve_full_isl=engine.reserve_prompt,
        watermark=engine.watermark,
        enable_prefix_caching=engine.prefix_caching,
        async_scheduling=False,
        scheduler_cls=scheduler,
    )
    if settings.model is not None:
        return _started(EngineArgs, {"model": settings.model, **own}), vllm
    # The folder is not needed after the engine has started.
    with TemporaryDirectory(prefix="sortedf-tiny-llama-") as folder:
        model = write_tiny_model(Path(folder), settings.max_model_len)
        return _started(EngineArgs, {"model": str(model), **own, **TINY}), vllm


def _started(kind: Any, settings: dict[str, Any]) -> Any:
    """Start an engine with these arguments."""
    from vllm.v1.engine.llm_engine import LLMEngine

    with without_current_folder():
        with settings_refused():
            config = kind(**settings).create_engine_config()
        with start_failed():
            return LLMEngine.from_vllm_config(config)
