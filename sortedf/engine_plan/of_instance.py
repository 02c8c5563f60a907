"""The requests of an instance as a workload for plans and their bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sortedf.engine_plan.workload import EngineWorkload

if TYPE_CHECKING:
    from sortedf.instance import Instance


def workload_of(instance: Instance) -> EngineWorkload:
    """Return the backlog of an instance's requests, with steps of a second.

    Every schedule of the instance is one of the workload, in as many seconds as steps,
    less the arrivals. That an engine may do more, evict for instance, only lowers a
    bound. (With "restart" no request is refused for what it would compute again.)
    """
    engine = replace(instance.engine, eviction="restart", prefix_caching=False)
    return EngineWorkload(instance.prefill, instance.decode, engine)
