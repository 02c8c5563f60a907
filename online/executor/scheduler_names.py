"""Names of vLLM that the scheduler class uses, none of which vLLM declares public.

They are checked before an engine starts, so that another version of vLLM is refused in
one line and not by an `AttributeError` during a run.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

SCHEDULER = "vllm.v1.core.sched.scheduler.Scheduler"

METHODS = {
    "schedule": (),
    "update_from_output": (),
    "add_request": (),
    "shutdown": (),
    "get_num_unfinished_requests": (),
    "_preempt_request": ("drop_stale_output",),
    "_free_request": (),
    "_handle_blocked_waiting_request": (),
    "_request_blocks_can_be_freed": (),
}
"""Methods of the scheduler, each with the keyword parameters used in calls."""

ATTRIBUTES = (
    "block_size",
    "connector",
    "kv_cache_config",
    "kv_cache_manager",
    "kv_holding_waiting",
    "max_model_len",
    "max_num_running_reqs",
    "num_spec_tokens",
    "pause_state",
    "policy",
    "requests",
    "requires_kv_delivery",
    "running",
    "vllm_config",
    "waiting",
)
"""Attributes of a scheduler, of its class or set by its `__init__`."""

CONFIG = "vllm.config.SchedulerConfig"

FIELDS = (
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "max_num_active_seqs",
    "max_num_batched_tokens",
    "max_num_scheduled_tokens",
    "max_num_seqs",
    "scheduler_reserve_full_isl",
    "watermark",
)
"""Fields of the scheduler's configuration."""

OTHERS = (
    "vllm.v1.core.sched.async_scheduler.AsyncScheduler",
    "vllm.v1.core.sched.interface.PauseState.UNPAUSED",
    "vllm.v1.core.sched.request_queue.RequestQueue",
    "vllm.v1.core.sched.request_queue.SchedulingPolicy.PRIORITY",
    "vllm.v1.core.block_pool.BlockPool.get_num_free_blocks",
    "vllm.v1.request.RequestStatus.RUNNING",
    "vllm.v1.request.RequestStatus.FINISHED_STOPPED",
    "vllm.v1.request.RequestStatus.FINISHED_LENGTH_CAPPED",
    "vllm.v1.request.RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR",
    "vllm.v1.request.RequestStatus.WAITING_FOR_REMOTE_KVS",
    "vllm.v1.request.RequestStatus.WAITING_FOR_STREAMING_REQ",
)


def missing_names() -> list[str]:
    """List the names that this version of vLLM lacks."""
    scheduler = _found(SCHEDULER)
    if scheduler is None:
        return [SCHEDULER]
    missing = [f"Scheduler.{name}" for name in ATTRIBUTES if not _has(scheduler, name)]
    for name, parameters in METHODS.items():
        method = getattr(scheduler, name, None)
        if method is None:
            missing.append(f"Scheduler.{name}")
            continue
        known = inspect.signature(method).parameters
        missing += [
            f"Scheduler.{name}({parameter})"
            for parameter in parameters
            if parameter not in known
        ]
    fields = getattr(_found(CONFIG), "__dataclass_fields__", ())
    missing += [f"SchedulerConfig.{name}" for name in FIELDS if name not in fields]
    return missing + [name for name in OTHERS if _found(name) is None]


def _found(name: str) -> Any:
    """Return the object with this dotted name; None if there is none."""
    parts = name.split(".")
    split = next(i for i, part in enumerate(parts) if part[:1].isupper())
    try:
        found: Any = importlib.import_module(".".join(parts[:split]))
        for part in parts[split:]:
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


def _has(scheduler: Any, name: str) -> bool:
    """Whether objects of this class have an attribute, without making one."""
    if hasattr(scheduler, name):
        return True
    return any(
        name in kind.__init__.__code__.co_names
        for kind in scheduler.__mro__
        if inspect.isfunction(kind.__dict__.get("__init__"))
    )
