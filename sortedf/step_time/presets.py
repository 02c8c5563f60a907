"""Step times of well-known models on well-known hardware, from rooflines.

A step reads all weights once, reads the KV of all running requests, and computes two
operations per weight for each token that it processes. So, per step,

    constant       weights in bytes / memory bandwidth
    per prompt token and per decoding request
                   2 * parameters / compute rate
    per KV token   KV bytes per token / memory bandwidth

Not included: the attention of long prompts (quadratic; for a model of 8e9 weights a
tenth of the operations at about 6,000 tokens), communication between GPUs, kernel
launches and scheduling. Reading and computing are added although hardware overlaps them
in part. These values are not measured: `sortedf calibrate` fits the same model to an
engine's own log, which is preferable if a log exists.

Sources
-------
- NVIDIA A100 80 GB SXM data sheet: 2,039 GB/s, 312 TFLOPS dense in bfloat16.
- Parameters, layers, KV heads and head size from the models' published configurations:
  Llama-2-7B (6.74e9; 32 layers, 32 heads of 128), Llama-3-8B (8.03e9; 32 layers, 8 KV
  heads of 128), Llama-3-70B (70.6e9; 80 layers, 8 KV heads of 128); two bytes a number.
- Achieved shares of the peaks, 80 % of the bandwidth and 50 % of the operations:
  rounded values commonly stated for well-tuned engines; a guess, not a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

from sortedf.step_time.model import StepTime

BYTES = 2
"""Bytes of a weight or a KV entry in 16 bits."""

BANDWIDTH_SHARE = 0.8
COMPUTE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Hardware:
    """Peaks of one or several accelerators together."""

    bandwidth: float  # bytes per second
    operations: float  # per second


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Sizes of a model that determine the duration of a step."""

    parameters: float
    layers: int
    kv_heads: int
    head_size: int

    @property
    def kv_bytes(self) -> int:
        """Bytes of KV per token: a key and a value in each layer."""
        return 2 * self.layers * self.kv_heads * self.head_size * BYTES


def roofline(model: ModelSize, hardware: Hardware) -> StepTime:
    """Step time of a model on some hardware, as described above."""
    bandwidth = hardware.bandwidth * BANDWIDTH_SHARE
    token_s = 2 * model.parameters / (hardware.operations * COMPUTE_SHARE)
    return StepTime(
        constant_s=model.parameters * BYTES / bandwidth,
        prefill_token_s=token_s,
        running_s=token_s,
        kv_token_s=model.kv_bytes / bandwidth,
    )


A100 = Hardware(2.039e12, 312e12)
FOUR_A100 = Hardware(4 * 2.039e12, 4 * 312e12)
LLAMA_2_7B = ModelSize(6.74e9, 32, 32, 128)
LLAMA_3_8B = ModelSize(8.03e9, 32, 8, 128)
LLAMA_3_70B = ModelSize(70.6e9, 80, 8, 128)

PRESETS: dict[str, StepTime] = {
    "a100-llama-2-7b": roofline(LLAMA_2_7B, A100),
    "a100-llama-3-8b": roofline(LLAMA_3_8B, A100),
    "4xa100-llama-3-70b": roofline(LLAMA_3_70B, FOUR_A100),
}
"""Step times by name."""
