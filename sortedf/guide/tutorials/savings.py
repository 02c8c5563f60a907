"""What a better scheduler would save on a trace.

Run it with the path of a trace, or without one on a generated stream:

    python savings.py [trace.csv]
"""

from __future__ import annotations

import sys

import sortedf
from online.named import parse_many
from online.plots import plot_cdfs
from online.slo import tightest_limit_s
from online.sweep import Setting, grid, sweep
from sortedf.engine_model import EngineModel
from sortedf.plotting import save
from sortedf.step_time import step_time_of

# The engine to be: its KV cache and the limits of its steps, as vLLM prints them when
# it starts, and how long its steps take. The preset is computed from data sheets;
# `sortedf calibrate` fits one to an engine's log.
ENGINE = EngineModel.vllm(
    kv_budget=16_384, block_size=16, max_num_seqs=256, max_batched_tokens=8192
)
STEP_TIME = step_time_of("a100-llama-3-8b")

POLICIES = "fcfs,uniboost,svf,svf-aged"
LOAD = 1.2  # work offered over what a full cache can just do


def main(path: str | None = None) -> None:
    """Simulate the same stream under several policies."""
    if path is None:
        trace = sortedf.generate("mix", 600, long_share=0.2, rate=1.0, seed=3)
    else:
        trace = sortedf.read_trace(path)

    # Lengths are the trace's; arrivals are drawn at the wanted load, the same ones for
    # every policy. `arrivals=Named("trace")` would replay the recorded ones.
    setting = Setting(trace, ENGINE, step_time=STEP_TIME, keep_logs=True)
    outcomes = sweep(setting, grid(parse_many(POLICIES), loads=[LOAD], seeds=[0]))

    print("policy      mean s   P99 s   99 % have a first token within   KV lost")
    for outcome in outcomes:
        figures, log = outcome.metrics, outcome.log
        assert figures.ttlt is not None, "some request was completed"
        assert log is not None, "keep_logs"
        print(
            f"{outcome.run.policy!s:10} {figures.mean_latency:7.1f} "
            f"{figures.ttlt.p99:7.1f}   {tightest_limit_s(log, 'TTFT'):27.1f} s "
            f"{figures.preemptions + figures.evictions:9}"
        )

    save(plot_cdfs(outcomes), "savings.png")
    print("how latencies are spread: savings.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
