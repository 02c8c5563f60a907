"""Answers requests with vLLM; the only file here that uses its serving API.

It uses the same handlers as `vllm run-batch` (0.32.0), so output lines are the same;
besides chat completions it supports completions. `vllm_version.TESTED` lists versions.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from online.executor.batch.answer_lines import Answer
from online.executor.batch.batch_errors import EngineGoneError
from online.executor.batch.batch_file import CHAT, BatchRequest
from online.executor.vllm_errors import settings_refused, start_failed
from online.executor.vllm_rules import rules_of
from online.executor.vllm_version import require_vllm
from online.processes import without_current_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from online.executor.batch.engine_settings import EngineSettings

SCHEDULERS = {
    True: "online.executor.batch.engine_side.AsyncBatchScheduler",
    False: "online.executor.batch.engine_side.BatchScheduler",
}
"""Scheduler classes, by whether scheduling is asynchronous."""

OWN = {"model", "scheduler_cls", "input_file", "output_file"}
"""Arguments of vLLM that the user cannot set."""

START_METHOD = "VLLM_WORKER_MULTIPROC_METHOD"
"""Start method of processes, spawn or fork; the user's choice is kept."""

HOLD_S = 10.0
"""Seconds for which starts are held back while requests arrive, at most."""

COUNTED = ("preemptions", "prompt_tokens", "cached_tokens", "running", "waiting")

LOOK_EVERY_S = 0.01
SETTLE_S = 0.2
"""Seconds between an error and the check whether the engine is alive."""

_sent: ContextVar[set[str] | None] = ContextVar("sent", default=None)
_own_id: ContextVar[str] = ContextVar("own_id", default="")


@asynccontextmanager
async def serve(
    settings: EngineSettings, scheduler: Mapping[str, Any]
) -> AsyncIterator[VllmServing]:
    """Start an engine in its own process; stop it afterwards.

    Parameters
    ----------
    settings : EngineSettings
    scheduler : mapping
        Options of the scheduler class: `policy` and its options.

    Raises
    ------
    ValueError
        If vLLM refuses the settings.
    EngineStartError
        If the engine does not start.
    """
    # Standard output is reserved for the result.
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    require_vllm()
    from vllm.v1.engine.async_llm import AsyncLLM

    with without_current_folder():
        args, config = configure(settings, scheduler)
        stats = _counting_logger()
        with start_failed():
            engine = AsyncLLM.from_vllm_config(config, stat_loggers=[stats])
    try:
        serving = VllmServing(engine, config, stats.counts)
        await serving.start(args)
        yield serving
    finally:
        engine.shutdown(timeout=config.shutdown_timeout)


def configure(settings: EngineSettings, scheduler: Mapping[str, Any]) -> Any:
    """Return arguments and configuration of an engine with this package's scheduler."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    args = _arguments(settings, scheduler)
    start_method = os.environ.get(START_METHOD)  # the CPU build overwrites it

    def make() -> Any:
        with settings_refused():
            return AsyncEngineArgs.from_cli_args(args).create_engine_config(
                usage_context=UsageContext.OPENAI_BATCH_RUNNER
            )

    config = make()
    if settings.kv_budget is not None:
        size = config.cache_config.block_size
        if settings.kv_budget < size:
            raise ValueError(
                f"--kv-budget {settings.kv_budget}: must be at least one block of "
                f"{size} tokens."
            )
        num_blocks = settings.kv_budget // size
        args.num_gpu_blocks_override = num_blocks + 1  # one is the null block
        # The engine itself then refuses longer requests, which could never run.
        longest = config.model_config.max_model_len
        args.max_model_len = min(longest, num_blocks * size)
        config = make()
    if start_method is not None:
        os.environ[START_METHOD] = start_method
    own = SCHEDULERS[bool(config.scheduler_config.async_scheduling)]
    config.scheduler_config.scheduler_cls = own
    return args, config


def _arguments(settings: EngineSettings, scheduler: Mapping[str, Any]) -> Any:
    """Return the arguments that `vllm run-batch` would parse from its command line."""
    from vllm.entrypoints.launchers.run_batch import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser())
    args = parser.parse_args(["-i", "", "-o", "", "--model", settings.model])
    served = settings.served_model_name
    for name, value in (
        ("block_size", settings.block_size),
        ("max_num_seqs", settings.max_num_seqs),
        ("max_num_batched_tokens", settings.max_batched_tokens),
        ("max_model_len", settings.max_model_len),
        ("served_model_name", [served] if served else None),
        *settings.arguments.items(),
    ):
        if name in OWN or not hasattr(args, name):
            why = "is set already" if name in OWN else "is unknown to vLLM"
            raise ValueError(f"--engine-arg {name}: this {why}.")
        if value is not None:
            setattr(args, name, value)
    args.additional_config = {
        **(args.additional_config or {}),
        "sortedf": dict(scheduler),
    }
    return args


def _counting_logger() -> Any:
    """Return a logger class for vLLM that counts preemptions and cached tokens."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Counting(StatLoggerBase):  # type: ignore[misc]
        counts = dict.fromkeys(COUNTED, 0)

        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            pass

        def record(
            self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any
        ) -> None:
            if iteration_stats is not None:
                self.counts["preemptions"] += iteration_stats.num_preempted_reqs
            if scheduler_stats is not None:
                self.counts["running"] = scheduler_stats.num_running_reqs
                self.counts["waiting"] = scheduler_stats.num_waiting_reqs
                # What a preempted request finds again is counted apart there.
                cache = scheduler_stats.prefix_cache_stats
                self.counts["prompt_tokens"] += cache.queries
                self.counts["cached_tokens"] += cache.hits

        def log_engine_initialized(self) -> None:
            pass

    return Counting


class VllmServing:
    """A running engine with vLLM's handlers for each API.

    Attributes
    ----------
    rules : EngineModel
        The engine's rules.
    max_model_len : int
        Longest prompt and answer together.
    counts : dict of str to int
        Preemptions, prompt tokens, and those found in the cache of prefixes so far;
        running and waiting requests now.
    """

    def __init__(self, engine: Any, config: Any, counts: dict[str, int]) -> None:
        self.counts = counts
        self.rules = rules_of(config, config.cache_config.block_size)
        self.max_model_len: int = config.model_config.max_model_len
        self._engine = engine
        self._state: Any = None
        self._arrived: set[str] = set()
        self._record_sent()

    async def start(self, args: Any) -> None:
        """Create the handlers."""
        from starlette.datastructures import State
        from vllm.entrypoints.launchers.api_server.entry import init_app_state

        tasks = await self._engine.get_supported_tasks()
        if "generate" not in tasks:
            raise ValueError("the model generates no text.")
        self._state = State()
        await init_app_state(self._engine, self._state, args, tasks)

    async def prompt_tokens(self, request: BatchRequest) -> list[int]:
        """Token ids of a prompt with the chat template; none if it is refused."""
        try:
            parsed = _parsed(request.url, request.body)
            if request.url == CHAT:
                _, inputs = await self._state.online_renderer.render_chat(parsed)
            else:
                inputs = await self._state.online_renderer.render_completion(parsed)
            ids: list[int] = max((one["prompt_token_ids"] for one in inputs), key=len)
            return ids
        except Exception:  # the request fails again when it is sent, and is reported
            return []

    async def answer(self, request: BatchRequest, body: dict[str, Any]) -> Answer:
        """Answer a request; EngineGoneError if the engine is dead."""
        _sent.set(self._arrived)
        _own_id.set(request.custom_id)
        try:
            answer = await _answer(self._handler(request.url), request, body)
        finally:
            self._arrived.add(request.custom_id)
        if answer.failed and await self._is_dead():
            raise EngineGoneError
        return answer

    async def _is_dead(self) -> bool:
        """Whether the engine is dead, checked after a short delay."""
        await asyncio.sleep(SETTLE_S)
        return bool(self._engine.errored)

    def _handler(self, url: str) -> Any:
        if url == CHAT:
            return self._state.openai_serving_chat.create_chat_completion
        return self._state.openai_serving_completion.create_completion

    async def hold(self) -> None:
        """Accept requests without starting any."""
        await self._alive(self._engine.pause_generation(mode="keep"))

    async def release(self, expected: int) -> None:
        """Start requests once `expected` have arrived or ended, or after `HOLD_S`."""
        latest = time.monotonic() + HOLD_S
        while len(self._arrived) < expected and time.monotonic() < latest:
            await asyncio.sleep(LOOK_EVERY_S)
        await self._alive(self._engine.resume_generation())

    async def _alive(self, call: Any) -> None:
        try:
            await call
        except Exception as error:
            if self._engine.errored:
                raise EngineGoneError from error
            raise

    def _record_sent(self) -> None:
        """Record which requests have reached the engine."""
        original = self._engine.add_request

        async def add_request(*args: Any, **kwargs: Any) -> Any:
            added = await original(*args, **kwargs)
            sent = _sent.get()
            if sent is not None:
                sent.add(_own_id.get())
            return added

        self._engine.add_request = add_request


async def _answer(handler: Any, request: BatchRequest, body: dict[str, Any]) -> Answer:
    """Call a handler of vLLM and convert its response to an output line."""
    from vllm.entrypoints.launchers import run_batch

    response: Any = None

    async def call(body: dict[str, Any]) -> Any:
        nonlocal response
        response = await handler(_parsed(request.url, body))
        return response

    sent = SimpleNamespace(custom_id=request.custom_id, body=body)
    tracker: Any = SimpleNamespace(completed=lambda: None)
    output = await run_batch.run_request(call, sent, tracker)  # catches all exceptions
    choices = getattr(response, "choices", None) or ()
    if any(choice.finish_reason == "abort" for choice in choices):
        raise EngineGoneError  # only a dying engine aborts requests of a batch
    if choices and request.url != CHAT:
        return Answer(_completion(request.custom_id, response), failed=False)
    return Answer(output.model_dump_json(), failed=output.error is not None)


def _completion(custom_id: str, response: Any) -> str:
    """Return the line of a completion, which `vllm run-batch` does not support."""
    from vllm.utils import random_uuid

    content = {
        "id": f"vllm-{random_uuid()}",
        "custom_id": custom_id,
        "response": {
            "status_code": 200,
            "request_id": f"vllm-batch-{random_uuid()}",
            "body": response.model_dump(mode="json"),
        },
        "error": None,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _parsed(url: str, body: dict[str, Any]) -> Any:
    """Check a request's parameters as vLLM's API does."""
    if url == CHAT:
        from vllm.entrypoints.openai.chat_completion.protocol import (
            ChatCompletionRequest,
        )

        return ChatCompletionRequest.model_validate(body)
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest

    return CompletionRequest.model_validate(body)
