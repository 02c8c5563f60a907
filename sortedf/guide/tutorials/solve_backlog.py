"""Solve a backlog, prove how good the schedule is, and have both checked.

Run it with the path of a trace, or without one on a generated backlog:

    python solve_backlog.py [trace.csv]
"""

from __future__ import annotations

import sys

import sortedf
from sortedf.certificate import proven_bound, read_certificate, write_certificate

KV_BUDGET = 16492  # tokens of KV cache


def main(path: str | None = None) -> None:
    """Go from a trace to a schedule that can be checked independently."""
    # A trace is two columns, prefill_tokens and decode_tokens. Without one, draw 200
    # requests: four chats for each long document.
    if path is None:
        trace = sortedf.generate("mix", 200, long_share=0.2, seed=1)
    else:
        trace = sortedf.read_trace(path)
    instance, _ = trace.to_instance(kv_budget=KV_BUDGET)

    # What engines do by default, and what can be done.
    fcfs = sortedf.solve(instance, method="fcfs", bound="none")
    best = sortedf.solve(instance, method="auto", seed=0)
    print(f"first come, first served: mean latency {fcfs.mean_latency:.1f} steps")
    print(f"auto: {best.mean_latency:.1f} steps")
    print(f"better by a factor of {fcfs.mean_latency / best.mean_latency:.2f}")

    # The bound holds for every schedule there is, not only for those tried.
    floor = sortedf.bound(instance, "dual")
    assert floor.certificate is not None, "the dual bound always has one"
    print(f"no schedule is below {floor.value / instance.num_requests:.1f} steps")
    gap = best.tel / floor.value - 1
    print(f"so auto is at most {gap:.1%} above the best possible")

    # Both are written to files for independent checks: the checker and the evaluation
    # of the certificate share no code with the solvers.
    sortedf.write_schedule(best, "schedule.json")
    write_certificate(floor.certificate, "certificate.json")

    start = [step for step in sortedf.read_start("schedule.json") if step is not None]
    report = sortedf.check(instance, start)
    proven = proven_bound(instance, read_certificate("certificate.json"))
    print(f"schedule checked: feasible {report.feasible}, TEL {report.tel:,}")
    print(f"certificate checked: no TEL is below {proven:,}")


if __name__ == "__main__":
    main(*sys.argv[1:])
