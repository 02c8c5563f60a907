"""Independent checker of schedules, in plain Python integers.

It shares no code with the solvers: the rules of `sortedf.instance` are implemented
again here, so that a mistake there does not go unnoticed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from sortedf.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from sortedf.instance import Instance

MAX_VIOLATIONS = 100
"""Violations listed in a report at most; `num_violations` counts all."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Attributes
    ----------
    rule : str
        "arrival", "kv_budget", "max_num_seqs" or "max_batched_tokens".
    where : int
        The request for "arrival", the step otherwise.
    value, limit : int
        The schedule's value, and the limit that it violates.
    """

    rule: str
    where: int
    value: int
    limit: int

    def __str__(self) -> str:
        if self.rule == "arrival":
            return (
                f"request {self.where} starts in step {self.value}, "
                f"before its arrival {self.limit}"
            )
        what = {
            "kv_budget": "KV tokens held",
            "max_num_seqs": "requests running",
            "max_batched_tokens": "tokens processed",
        }[self.rule]
        return f"step {self.where}: {self.value} {what}, {self.rule} is {self.limit}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Result of a check.

    Attributes
    ----------
    feasible : bool
    tel : int
        Sum of `C - a`, recomputed.
    peak_kv : int
        Most KV held in any step, in tokens.
    makespan : int
    num_violations : int
    violations : tuple of Violation
        The first `MAX_VIOLATIONS` of them.
    """

    feasible: bool
    tel: int
    peak_kv: int
    makespan: int
    num_violations: int
    violations: tuple[Violation, ...]


def check(instance: Instance, start: Schedule | ArrayLike) -> CheckReport:
    """Verify a schedule against its instance and recompute its TEL.

    Parameters
    ----------
    instance : Instance
    start : Schedule or array_like of int, shape (n,)
        Start steps by request id.

    Returns
    -------
    CheckReport

    Raises
    ------
    ValueError, TypeError
        If `start` has the wrong length or holds something that is no step.

    Examples
    --------
    >>> from sortedf import Instance, check
    >>> inst = Instance(prefill=[3, 1], decode=[2, 4], kv_budget=7)
    >>> check(inst, [0, 2]).feasible
    True
    >>> print(check(inst, [0, 0]).violations[0])
    step 2: 8 KV tokens held, kv_budget is 7
    """
    if isinstance(start, Schedule):
        start = start.start
    p = Schedule(instance, start).start.tolist()
    s, o = instance.prefill.tolist(), instance.decode.tolist()
    a = instance.arrival.tolist()
    found: list[Violation] = []
    peak = 0
    for i, (begin, earliest) in enumerate(zip(p, a, strict=True)):
        if begin < earliest:
            found.append(Violation("arrival", i, begin, earliest))
    block = instance.engine.block_size
    budget = instance.kv_budget // block * block
    usage = _kv_at_completions(s, o, p, block)
    if instance.prefixes is not None:
        usage = _kv_with_shared(instance, s, o, p, block)
    for step, used in usage:
        peak = max(peak, used)
        if used > budget:
            found.append(Violation("kv_budget", step, used, budget))
    found.extend(_step_violations(instance, s, o, p))
    completion = [begin + length for begin, length in zip(p, o, strict=True)]
    return CheckReport(
        feasible=not found,
        tel=sum(completion) - sum(a),
        peak_kv=peak,
        makespan=max(completion, default=0),
        num_violations=len(found),
        violations=tuple(found[:MAX_VIOLATIONS]),
    )


def _kv_at_completions(
    s: list[int], o: list[int], p: list[int], block: int
) -> Iterator[tuple[int, int]]:
    """Yield (step, tokens held) for every step in which a request completes.

    In step `t` a request holds `s - p + t` tokens: count and sum of `s - p` over the
    running ones are enough, and a count of `(s - p) mod block` for the rounding.
    """
    completion = [begin + length for begin, length in zip(p, o, strict=True)]
    by_start = sorted(range(len(p)), key=p.__getitem__)
    by_completion = sorted(range(len(p)), key=completion.__getitem__)
    running = offsets = started = 0
    residues: Counter[int] = Counter()
    for step, leaving in groupby(by_completion, key=completion.__getitem__):
        while started < len(p) and p[by_start[started]] < step:
            offset = s[by_start[started]] - p[by_start[started]]
            running, offsets, started = running + 1, offsets + offset, started + 1
            residues[offset % block] += 1
        used = offsets + running * step
        if block > 1:
            used += sum(c * (-(r + step) % block) for r, c in residues.items())
        yield step, used
        for i in leaving:
            running, offsets = running - 1, offsets - (s[i] - p[i])
            residues[(s[i] - p[i]) % block] -= 1


def _kv_with_shared(
    instance: Instance, s: list[int], o: list[int], p: list[int], block: int
) -> Iterator[tuple[int, int]]:
    """Yield (step, tokens held) likewise, where prompts share prefixes.

    In each step the nodes of all running requests are collected and counted once.
    """
    shared = instance.prefixes
    assert shared is not None
    parent, blocks = shared.parent.tolist(), shared.blocks.tolist()
    nodes: list[list[int]] = []
    for leaf in shared.leaf.tolist():
        nodes.append([])
        while leaf >= 0:
            nodes[-1].append(leaf)
            leaf = parent[leaf]
    path = [sum(blocks[k] for k in own) for own in nodes]
    coming = sorted(range(len(p)), key=p.__getitem__, reverse=True)
    running: list[int] = []
    for step in sorted({begin + length for begin, length in zip(p, o, strict=True)}):
        while coming and p[coming[-1]] < step:
            running.append(coming.pop())
        running = [i for i in running if step <= p[i] + o[i]]
        held = {node for i in running for node in nodes[i]}
        used = sum(-(-(s[i] + step - p[i]) // block) - path[i] for i in running)
        yield step, (used + sum(blocks[k] for k in held)) * block


def _step_violations(
    instance: Instance, s: list[int], o: list[int], p: list[int]
) -> Iterator[Violation]:
    """Check the caps of a step in every step in which a request starts.

    Between starts the number of running requests can only fall.
    """
    max_seqs = instance.engine.max_num_seqs
    max_tokens = instance.engine.max_batched_tokens
    if max_seqs is None and max_tokens is None:
        return
    starts = sorted(p)
    completions = sorted(begin + length for begin, length in zip(p, o, strict=True))
    prompt_tokens: Counter[int] = Counter()
    for begin, prompt in zip(p, s, strict=True):
        prompt_tokens[begin] += prompt
    started = completed = 0
    for begin in sorted(prompt_tokens):
        before = started
        while started < len(starts) and starts[started] <= begin:
            started += 1
        while completed < len(completions) and completions[completed] <= begin:
            completed += 1
        running = started - completed
        if max_seqs is not None and running > max_seqs:
            yield Violation("max_num_seqs", begin + 1, running, max_seqs)
        tokens = prompt_tokens[begin] + before - completed
        if max_tokens is not None and tokens > max_tokens:
            yield Violation("max_batched_tokens", begin + 1, tokens, max_tokens)
