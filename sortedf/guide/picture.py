"""Draws the README's picture: `python -m sortedf.guide.picture`.

Its figures are written into the file as well; a test compares them with the README.
"""

from __future__ import annotations

from pathlib import Path

import sortedf
from sortedf.plotting import plot_completions
from sortedf.plotting.canvas import settle

PICTURE = Path(__file__).with_name("first.png")
METHODS = ("fcfs", "mc-sf", "sorted-f", "svf", "auto")
DOTS_PER_INCH = 80
"""Few, so that the file stays small."""


def main() -> None:
    """Solve the README's instance, and draw completions over time."""
    trace = sortedf.generate("mix", 500, long_share=0.2, seed=1)
    instance, _ = trace.to_instance(kv_budget=16492)
    results = sortedf.compare(instance, METHODS)
    bound = results[0].lower_bound
    figure = plot_completions(
        {result.method: result.schedule for result in results},
        lower_bound_mean=None if bound is None else bound / instance.num_requests,
        title="500 requests, 80 % chat and 20 % documents, 16,492 tokens of KV",
    )
    settle(figure)
    shown = [f"{result.method} {result.mean_latency:,.1f}" for result in results]
    if bound is not None:
        shown.append(f"lower bound {bound / instance.num_requests:,.1f}")
    figure.savefig(
        PICTURE,
        dpi=DOTS_PER_INCH,
        metadata={"Software": None, "Description": "; ".join(shown)},
    )
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
