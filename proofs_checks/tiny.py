"""Tiny backlogs, exactly: optimal schedules, list rules, and loops over all of them.

Everything here is a second, slow and obvious, implementation of what `sortedf`
computes: start steps one after another, groups by all subsets.
`test_claim_twins_agree.py` compares the two. The loops are compiled, so that hundreds
of thousands of instances take seconds; all numbers are integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf import Instance, Schedule, check
from sortedf.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

RULES = ("fcfs", "mc-sf", "total-size", "svf", "lpt", "sorted-f")
"""List rules by their number in `_order`."""

Anomaly = tuple[Instance, int, int, int]
"""An instance, which request is changed, TEL before and after."""

UNBOUNDED = 2**40
"""More than any TEL here."""


@kernel
def _copy(source: Ints, target: Ints) -> None:
    """Element by element: slices take seconds to compile."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def _fits(used: Ints, s: int, o: int, start: int, budget: int) -> bool:
    for j in range(1, o + 1):  # noqa: SIM110  a loop compiles faster
        if used[start + j] + s + j > budget:
            return False
    return True


@kernel
def _add(used: Ints, s: int, o: int, start: int, sign: int) -> None:
    for j in range(1, o + 1):
        used[start + j] += sign * (s + j)


@kernel
def _earliest(used: Ints, s: int, o: int, start: int, budget: int) -> int:
    """First feasible start from `start` on; `used` ends behind all that runs."""
    while not _fits(used, s, o, start, budget):
        start += 1
    return start


@kernel
def _least_tel(
    s: Ints, o: Ints, budget: int, horizon: int, limit: int, best_start: Ints
) -> int:
    """Least TEL below `limit` of a schedule that ends by `horizon`, or `limit`.

    Depth first over the requests in the order given; equal neighbours start in order.
    """
    n = len(s)
    rest = np.zeros(n + 1, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        rest[i] = rest[i + 1] + o[i]
    used = np.zeros(horizon + 2, dtype=np.int64)
    start = np.zeros(n, dtype=np.int64) - 1
    placed = np.zeros(n, dtype=np.bool_)
    best = limit
    tel = 0
    i = 0
    while i >= 0:
        if placed[i]:
            _add(used, s[i], o[i], start[i], -1)
            tel -= start[i] + o[i]
            placed[i] = False
        t = start[i] + 1
        found = False
        while t + o[i] <= horizon and tel + t + rest[i] < best:
            if _fits(used, s[i], o[i], t, budget):
                found = True
                break
            t += 1
        if not found:
            i -= 1
            continue
        start[i] = t
        placed[i] = True
        tel += t + o[i]
        _add(used, s[i], o[i], t, 1)
        if i == n - 1:
            best = tel
            _copy(start, best_start)
            continue
        i += 1
        same = s[i] == s[i - 1] and o[i] == o[i - 1]
        start[i] = start[i - 1] - 1 if same else -1
    return best


@kernel
def _place(s: Ints, o: Ints, budget: int, order: Ints, start: Ints) -> int:
    """Place a list as the papers do: fill `start`, return TEL."""
    used = np.zeros(o.sum() + o.max() + 2, dtype=np.int64)
    now = tel = 0
    for i in order:
        now = _earliest(used, s[i], o[i], now, budget)
        start[i] = now
        _add(used, s[i], o[i], now, 1)
        tel += now + o[i]
    return tel


@kernel
def _in_sequence(s: Ints, o: Ints, budget: int, order: Ints, start: Ints) -> int:
    """Each request at its earliest feasible start, one after another; return TEL."""
    used = np.zeros(o.sum() + o.max() + 2, dtype=np.int64)
    tel = 0
    for i in order:
        start[i] = _earliest(used, s[i], o[i], 0, budget)
        _add(used, s[i], o[i], start[i], 1)
        tel += start[i] + o[i]
    return tel


@kernel
def _next_order(order: Ints) -> bool:
    """Next permutation in lexicographic order, in place; False after the last."""
    n = len(order)
    i = n - 2
    while i >= 0 and order[i] > order[i + 1]:
        i -= 1
    if i < 0:
        return False
    j = n - 1
    while order[j] < order[i]:
        j -= 1
    order[i], order[j] = order[j], order[i]
    i, j = i + 1, n - 1
    while i < j:
        order[i], order[j] = order[j], order[i]
        i, j = i + 1, j - 1
    return True


@kernel
def _best_in_sequence(s: Ints, o: Ints, budget: int, best_start: Ints) -> int:
    """Least TEL of `_in_sequence` over all orders."""
    order = np.arange(len(s))
    start = np.zeros(len(s), dtype=np.int64)
    best = UNBOUNDED
    while True:
        tel = _in_sequence(s, o, budget, order, start)
        if tel < best:
            best = tel
            _copy(start, best_start)
        if not _next_order(order):
            return best


@kernel
def _best_group(s: Ints, o: Ints, budget: int, left: int) -> int:
    """Feasible group of least F within the bit set `left`; ties: larger, lower ids."""
    best = best_sum = best_size = 0
    group = left
    while group > 0:
        total = peaks = size = 0
        for i in range(len(s)):
            if group >> i & 1:
                total += o[i]
                peaks += s[i] + o[i]
                size += 1
        if peaks <= budget:
            new, old = total * best_size**2, best_sum * size**2
            differ = group ^ best
            better = best == 0 or new < old
            if best != 0 and new == old:
                first = (differ & -differ & group) != 0
                better = size > best_size or (size == best_size and first)
            if better:
                best, best_sum, best_size = group, total, size
        group = (group - 1) & left
    return best


@kernel
def _sorted_by(key: Ints) -> Ints:
    """Stable order by a key; numpy's own sort takes seconds to compile."""
    order = np.arange(len(key))
    for i in range(1, len(key)):
        j = i
        while j > 0 and key[order[j - 1]] > key[order[j]]:
            order[j - 1], order[j] = order[j], order[j - 1]
            j -= 1
    return order


@kernel
def _order(rule: int, s: Ints, o: Ints, budget: int) -> Ints:
    """List of a rule by its number in `RULES`."""
    if rule == 1:
        return _sorted_by(o)
    if rule == 2:
        return _sorted_by(s + o)
    if rule == 3:
        return _sorted_by(2 * s * o + o * (o + 1))
    if rule == 4:
        return _sorted_by(-o)
    order = np.arange(len(s))
    if rule == 5:
        by_answer = _sorted_by(o)
        left, found = (1 << len(s)) - 1, 0
        while left > 0:
            group = _best_group(s, o, budget, left)
            for i in by_answer:
                if group >> i & 1:
                    order[found] = i
                    found += 1
            left ^= group
    return order


@kernel
def _tel_of(rule: int, s: Ints, o: Ints, budget: int, start: Ints) -> int:
    return _place(s, o, budget, _order(rule, s, o, budget), start)


@kernel
def _tel_without(rule: int, s: Ints, o: Ints, budget: int, i: int, start: Ints) -> int:
    few_s, few_o = s[1:].copy(), o[1:].copy()
    for j in range(i):
        few_s[j], few_o[j] = s[j], o[j]
    return _tel_of(rule, few_s, few_o, budget, start)


@kernel
def _decode(code: int, max_s: int, max_o: int, s: Ints, o: Ints) -> None:
    """Fill in instance number `code` of the `(max_s max_o)^n` ones."""
    for i in range(len(s)):
        s[i] = 1 + code % max_s
        code //= max_s
        o[i] = 1 + code % max_o
        code //= max_o


@kernel
def _note(
    row: Ints, s: Ints, o: Ints, budget: int, which: int, before: int, after: int
) -> None:
    """Write size, prompts, answers, budget and three more numbers into a row."""
    m = len(s)
    row[0] = m
    for i in range(m):
        row[1 + i], row[1 + m + i] = s[i], o[i]
    row[2 * m + 1], row[2 * m + 2] = budget, which
    row[2 * m + 3], row[2 * m + 4] = before, after


@kernel
def _scan_ratios(
    n: int, max_s: int, max_o: int, worst: Ints, where: Ints, skip: int
) -> int:
    """Worst ratio of each rule to the optimum over all ordered instances.

    `worst[r]` becomes (TEL, optimum) and `where[r]` the first instance that has it; row
    `len(RULES)` is SVF's TEL over its own guarantee, (TEL (M - P), optimum (3 M - P))
    with the largest peak P. Checks every `skip`-th instance and returns their number.
    """
    s, o = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    start, best_start = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    seen = 0
    for code in range(0, (max_s * max_o) ** n, skip):
        _decode(code, max_s, max_o, s, o)
        peaks = s + o
        for budget in range(peaks.max(), peaks.sum()):
            seen += 1
            tel = np.zeros(len(worst), dtype=np.int64)
            for rule in range(6):
                tel[rule] = _tel_of(rule, s, o, budget, start)
            limit = tel[:6].min()
            least = _least_tel(s, o, budget, o.sum(), limit, best_start)
            for k in range(len(worst)):
                high, low = tel[k], least
                if k == 6:
                    high = tel[3] * (budget - peaks.max())
                    low = least * (3 * budget - peaks.max())
                if high * worst[k, 1] > worst[k, 0] * low:
                    worst[k, 0], worst[k, 1] = high, low
                    _note(where[k], s, o, budget, 0, high, low)
    return seen


@kernel
def _seek_in_budget(
    rule: int, s: Ints, o: Ints, budget: int, before: int, start: Ints, row: Ints
) -> None:
    """Fill `row`, if still empty, when a token of budget more makes `rule` worse."""
    if row[0] == 0:
        after = _tel_of(rule, s, o, budget + 1, start)
        if after > before:
            _note(row, s, o, budget, 0, before, after)


@kernel
def _seek_in_request(
    rule: int,
    s: Ints,
    o: Ints,
    budget: int,
    i: int,
    before: int,
    start: Ints,
    where: Ints,
) -> None:
    """Fill rows 1 and 2 of `where`, if still empty: without `i`, its answer shorter."""
    if where[1, 0] == 0 and len(s) > 1:
        after = _tel_without(rule, s, o, budget, i, start)
        if after > before:
            _note(where[1], s, o, budget, i, before, after)
    if where[2, 0] == 0 and o[i] > 1:
        o[i] -= 1
        after = _tel_of(rule, s, o, budget, start)
        o[i] += 1
        if after > before:
            _note(where[2], s, o, budget, i, before, after)


@kernel
def _scan_anomalies(n: int, max_s: int, max_o: int, rule: int, where: Ints) -> None:
    """Find the first anomaly of each kind of a rule, for all sizes up to `n`.

    Kinds: one token of budget more, one request fewer, one token of an answer fewer.
    `where[kind]` becomes size, prompts, answers, budget, which request, TEL before and
    after; size 0 where there is none.
    """
    for m in range(1, n + 1):
        s, o = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        start = np.zeros(m, dtype=np.int64)
        for code in range((max_s * max_o) ** m):
            if where[:, 0].min() > 0:
                return
            _decode(code, max_s, max_o, s, o)
            peaks = s + o
            for budget in range(peaks.max(), peaks.sum()):
                before = _tel_of(rule, s, o, budget, start)
                _seek_in_budget(rule, s, o, budget, before, start, where[0])
                for i in range(m):
                    _seek_in_request(rule, s, o, budget, i, before, start, where)


@kernel
def _random_anomalies(
    n: int, longest: int, tries: int, rule: int, seed: int, where: Ints
) -> None:
    """Look for anomalies as `_scan_anomalies` does, among random instances of `n`."""
    np.random.seed(seed)  # noqa: NPY002  compiled code has no Generator of its own
    s, o = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    start = np.zeros(n, dtype=np.int64)
    for _ in range(tries):
        most = np.random.randint(2, longest + 1)  # noqa: NPY002
        for i in range(n):
            s[i] = np.random.randint(1, most + 1)  # noqa: NPY002
            o[i] = np.random.randint(1, most + 1)  # noqa: NPY002
        peak, total = (s + o).max(), (s + o).sum()
        budget = np.random.randint(peak, min(total, 3 * peak))  # noqa: NPY002
        i = np.random.randint(n)  # noqa: NPY002
        before = _tel_of(rule, s, o, budget, start)
        _seek_in_budget(rule, s, o, budget, before, start, where[0])
        _seek_in_request(rule, s, o, budget, i, before, start, where)


@kernel
def _scan_waiting(n: int, max_s: int, max_o: int, where: Ints) -> int:
    """Find the first instance whose optimum no sequence of earliest starts has.

    `where` becomes size, prompts, answers, budget, 0, optimum, best of the sequences.
    Returns the number of instances checked.
    """
    s, o = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    start, best_start = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    seen = 0
    for code in range((max_s * max_o) ** n):
        _decode(code, max_s, max_o, s, o)
        sorted_already = True
        for i in range(n - 1):
            key, later = s[i] * 1000 + o[i], s[i + 1] * 1000 + o[i + 1]
            sorted_already &= key <= later
        if not sorted_already:
            continue
        for budget in range((s + o).max(), (s + o).sum()):
            seen += 1
            tel = _best_in_sequence(s, o, budget, start)
            least = _least_tel(s, o, budget, o.sum(), tel, best_start)
            if least < tel:
                _note(where, s, o, budget, 0, least, tel)
                return seen
    return seen


def optimum(
    instance: Instance, *, horizon: int | None = None, limit: int = UNBOUNDED
) -> Schedule | None:
    """Optimal schedule of a tiny backlog by exact search, verified by the checker.

    Parameters
    ----------
    horizon : int, optional
        Latest completion; the sum of answers, which loses nothing, if left out.
    limit : int
        Only schedules with a TEL below this are searched for.

    Returns
    -------
    Schedule or None
        None if there is no such schedule.
    """
    assert instance.is_backlog
    order = np.lexsort((instance.prefill, instance.decode))
    s, o = instance.prefill[order], instance.decode[order]  # copies, writeable
    found = np.zeros(len(s), dtype=np.int64)
    end = int(o.sum()) if horizon is None else horizon
    if _least_tel(s, o, instance.kv_budget, end, limit, found) == limit:
        return None
    start = np.zeros(len(s), dtype=np.int64)
    start[order] = found
    return checked(instance, start)


def best_in_sequence(instance: Instance) -> Schedule:
    """Best schedule that puts requests at their earliest starts in some order."""
    start = np.zeros(instance.num_requests, dtype=np.int64)
    s, o = instance.prefill.copy(), instance.decode.copy()
    _best_in_sequence(s, o, instance.kv_budget, start)
    return checked(instance, start)


def listed(instance: Instance, rule: str) -> Schedule:
    """Schedule of a list rule of `RULES`, placed as the papers do."""
    start = np.zeros(instance.num_requests, dtype=np.int64)
    number = RULES.index(rule)
    s, o = instance.prefill.copy(), instance.decode.copy()  # one type to compile for
    _tel_of(number, s, o, instance.kv_budget, start)
    return checked(instance, start)


def checked(instance: Instance, start: Sequence[int] | Ints) -> Schedule:
    """Schedule that the checker accepts."""
    report = check(instance, start)
    assert report.feasible, report.violations
    return Schedule(instance, start)


def all_instances(
    n: int, max_s: int, max_o: int, *, every: int = 1
) -> Iterator[Instance]:
    """Yield every `every`-th of the ordered backlogs of `n` requests.

    Budgets go from the largest peak to one token below the sum of peaks: with more,
    all start at once.
    """
    s, o = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    count = 0
    for code in range((max_s * max_o) ** n):
        _decode(code, max_s, max_o, s, o)
        for budget in range(int((s + o).max()), int((s + o).sum())):
            if count % every == 0:
                yield Instance(s, o, budget)
            count += 1


def scan_ratios(
    n: int, max_s: int, max_o: int, *, skip: int = 1
) -> tuple[int, dict[str, tuple[int, int, Instance]]]:
    """Worst ratios over all ordered instances; see `_scan_ratios`.

    Returns
    -------
    int
        Number of instances.
    dict
        By rule, and "svf-guarantee" for SVF's TEL over its own guarantee: numerator,
        denominator, instance.
    """
    worst = np.zeros((len(RULES) + 1, 2), dtype=np.int64)
    worst[:, 1] = 1
    where = np.zeros((len(worst), 2 * n + 5), dtype=np.int64)
    seen = _scan_ratios(n, max_s, max_o, worst, where, skip)
    found = {}
    for name, (high, low), row in zip(
        (*RULES, "svf-guarantee"), worst.tolist(), where.tolist(), strict=True
    ):
        found[name] = (high, low, _instance(row))
    return seen, found


def scan_anomalies(
    rule: str, n: int, max_s: int, max_o: int
) -> dict[str, Anomaly | None]:
    """Find the first anomaly of each kind of a rule.

    Returns
    -------
    dict
        By kind, "memory", "fewer" and "shorter": instance, which request, TEL before
        and after the change; None where there is none.
    """
    where = np.zeros((3, 2 * n + 5), dtype=np.int64)
    _scan_anomalies(n, max_s, max_o, RULES.index(rule), where)
    return _anomalies(where)


def random_anomalies(rule: str, n: int, tries: int) -> dict[str, Anomaly | None]:
    """As `scan_anomalies`, among random instances of `n` requests; seeded by `n`."""
    where = np.zeros((3, 2 * n + 5), dtype=np.int64)
    _random_anomalies(n, 8, tries, RULES.index(rule), n, where)
    return _anomalies(where)


def _anomalies(where: Ints) -> dict[str, Anomaly | None]:
    found: dict[str, Anomaly | None] = {}
    for kind, row in zip(("memory", "fewer", "shorter"), where.tolist(), strict=True):
        which, before, after = row[2 * row[0] + 2 : 2 * row[0] + 5]
        found[kind] = (_instance(row), which, before, after) if row[0] else None
    return found


def _instance(row: list[int]) -> Instance:
    n = row[0]
    return Instance(row[1 : n + 1], row[n + 1 : 2 * n + 1], row[2 * n + 1])


def scan_waiting(n: int, max_s: int, max_o: int) -> tuple[int, Instance | None]:
    """Find the first instance that no sequence of earliest starts solves."""
    where = np.zeros(2 * n + 5, dtype=np.int64)
    seen = _scan_waiting(n, max_s, max_o, where)
    return seen, _instance(where.tolist()) if where[0] else None
