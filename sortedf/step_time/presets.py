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
- NVIDIA data sheets, bandwidth and dense operations in bfloat16 (half of the figure
  with sparsity, where only that is given): A100 80 GB SXM 2,039 GB/s, 312 TFLOPS; H100
  SXM 3.35 TB/s, 989 TFLOPS; H200 SXM 4.8 TB/s, 989 TFLOPS; L4 300 GB/s, 121 TFLOPS.
- Parameters, layers, KV heads and head size from the models' published configurations:
  Llama-2-7B (6.74e9; 32 layers, 32 heads of 128), Llama-3-8B, also 3.1 (8.03e9; 32
  layers, 8 KV heads of 128), Llama-3-70B, also 3.1 and 3.3 (70.6e9; 80 layers, 8 KV
  heads of 128), Qwen3-8B (8.19e9; 36 layers, 8 KV heads of 128), Qwen3-32B (32.8e9; 64
  layers, 8 KV heads of 128); two bytes a number.
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

    def times(self, count: int) -> Hardware:
        """So many of them together."""
        return Hardware(count * self.bandwidth, count * self.operations)


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
H100 = Hardware(3.35e12, 989e12)
H200 = Hardware(4.8e12, 989e12)
L4 = Hardware(0.3e12, 121e12)
LLAMA_2_7B = ModelSize(6.74e9, 32, 32, 128)
LLAMA_3_8B = ModelSize(8.03e9, 32, 8, 128)
LLAMA_3_70B = ModelSize(70.6e9, 80, 8, 128)
QWEN_3_8B = ModelSize(8.19e9, 36, 8, 128)
QWEN_3_32B = ModelSize(32.8e9, 64, 8, 128)

PRESETS: dict[str, StepTime] = {
    "a100-llama-2-7b": roofline(LLAMA_2_7B, A100),
    "a100-llama-3-8b": roofline(LLAMA_3_8B, A100),
    "a100-qwen3-8b": roofline(QWEN_3_8B, A100),
    "4xa100-llama-3-70b": roofline(LLAMA_3_70B, A100.times(4)),
    "h100-llama-3-8b": roofline(LLAMA_3_8B, H100),
    "h100-qwen3-8b": roofline(QWEN_3_8B, H100),
    "2xh100-qwen3-32b": roofline(QWEN_3_32B, H100.times(2)),
    "4xh100-llama-3-70b": roofline(LLAMA_3_70B, H100.times(4)),
    "h200-llama-3-8b": roofline(LLAMA_3_8B, H200),
    "h200-qwen3-32b": roofline(QWEN_3_32B, H200),
    "2xh200-llama-3-70b": roofline(LLAMA_3_70B, H200.times(2)),
    "l4-llama-3-8b": roofline(LLAMA_3_8B, L4),
    "l4-qwen3-8b": roofline(QWEN_3_8B, L4),
}
"""Step times by name; none is measured."""
