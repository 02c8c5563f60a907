"""Run Vidur's simulator on a trace; a script for an interpreter that has Vidur.

`python vidur_side.py JOB.json`, from a folder to which Vidur may write, prints one JSON
object. The job names a CSV file with Vidur's columns, and the rules and step times of
our own run. Vidur's scheduler with prefills in chunks ("Sarathi") gets the same limits
and, instead of its learned predictor of step times, the same linear formula: it then
needs no profiling data, spends no time on predictions, and results can be compared.
It imports nothing of this project, and Vidur only when it is run.
"""

from __future__ import annotations

import atexit
import json
import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Duration:
    """Seconds of a batch, as Vidur's events read them."""

    total_time: float
    model_time: float


class Linear:
    """Predicts seconds of a batch by our step time."""

    def __init__(self, terms: dict[str, float]) -> None:
        self._terms = terms

    def get_execution_time(self, batch: Any, pipeline_stage: int) -> Duration:
        """Add up the work of a batch."""
        decoding = batch.num_decode_tokens
        kv = sum(request.num_processed_tokens for request in batch.requests)
        terms = self._terms
        seconds = (
            terms["constant_s"]
            + terms["prefill_token_s"] * (batch.total_num_tokens - decoding)
            + terms["running_s"] * decoding
            + terms["kv_token_s"] * (kv + batch.total_num_tokens)
        )
        return Duration(seconds, seconds)


def simulate(job: dict[str, Any]) -> dict[str, Any]:
    """Set up and run, and time the run alone."""
    from vidur import config as c  # type: ignore[import-not-found]
    from vidur import execution_time_predictor as predictors
    from vidur.simulator import Simulator  # type: ignore[import-not-found]

    registry = predictors.ExecutionTimePredictorRegistry
    registry.get = classmethod(lambda cls, *args, **kwargs: Linear(job["step_time"]))
    settings = c.SimulationConfig(
        log_level="error",
        cluster_config=c.ClusterConfig(
            replica_config=c.ReplicaConfig(model_name="meta-llama/Meta-Llama-3-8B"),
            replica_scheduler_config=c.SarathiSchedulerConfig(
                batch_size_cap=job["max_num_seqs"],
                block_size=job["block_size"],
                watermark_blocks_fraction=0.0,
                num_blocks=job["num_blocks"],
                chunk_size=job["max_batched_tokens"],
            ),
        ),
        request_generator_config=c.TraceRequestGeneratorConfig(
            trace_file=job["trace"], max_tokens=job["max_tokens"]
        ),
        metrics_config=c.MetricsConfig(
            write_metrics=False,
            enable_chrome_trace=False,
            store_plots=False,
            output_dir="output",
        ),
    )
    simulator = Simulator(settings)
    atexit.unregister(simulator._write_output)
    requests = [event._request for _, event in simulator._event_queue]
    began = time.perf_counter()
    simulator.run()
    seconds = time.perf_counter() - began
    latency = [r._completed_at - r._arrived_at for r in requests if r._completed]
    return {
        "seconds": seconds,
        "completed": len(latency),
        "mean_latency": sum(latency) / len(latency),
        "restarts": sum(r._num_restarts for r in requests),
    }


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = simulate(json.load(file))
    print(json.dumps(found))
