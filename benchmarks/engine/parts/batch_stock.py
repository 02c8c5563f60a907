"""`vllm run-batch` itself, with a stop watch on each request.

Run as `python -m benchmarks.engine.parts.batch_stock TIMES [its own arguments]`; writes
to TIMES the seconds from the first request's start to each request's end, and the
preemptions.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any


def main(times: Path) -> None:
    """Run the given command line, and write the times."""
    from prometheus_client import REGISTRY
    from vllm.entrypoints.launchers import run_batch as vllm_batch

    began: list[float] = []
    done_s: list[float] = []
    original = vllm_batch.run_request

    async def timed(*args: Any, **kwargs: Any) -> Any:
        if not began:
            began.append(time.perf_counter())
        output = await original(*args, **kwargs)
        done_s.append(time.perf_counter() - began[0])
        return output

    vllm_batch.run_request = timed
    asyncio.run(vllm_batch.main(vllm_batch.parse_args()))
    preemptions = sum(
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "vllm:num_preemptions_total"
    )
    content = {"done_s": done_s, "preemptions": int(preemptions)}
    times.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    written_to = Path(sys.argv.pop(1))
    main(written_to)
