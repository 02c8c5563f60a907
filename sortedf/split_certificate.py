"""Certificates of bounds by prices, where the price of a shared prefix is split.

Steps are cut into stretches, and a token of KV has a price `lambda_k >= 0` in the steps
of stretch `k`, 0 after the last. In stretch `k` the price of node `m`, `lambda_k` times
its tokens `w_m`, is split among the requests below it: request `i` pays `x_imk` in each
step in which it runs, and each of its own tokens pays `z_mk` more. A split is valid if

    sum_i x_imk + z_mk (M - d_m)  <=  lambda_k w_m,

where `d_m` are the tokens from the root to the end of the node. In a step in which any
request below `m` runs, the running ones have at most `M - d_m` own tokens, so they pay
for the node no more than its price; in other steps they pay nothing. So in each step
all running requests pay at most `lambda_k` times the KV held, which is at most `M`, and

    TEL  >=  sum_i min_{t >= a_i} [t + o_i - a_i + what i pays from t on]
             - M sum_k lambda_k (steps of k).

Where a request's leaf is not paid for in full, the rest is paid in each step in which
any request of that leaf runs. Values `v_i` that `sortedf.joint_values` finds valid for
it take the place of the minima in the sum.

This file shares no code with the bounds: it recomputes all of it from the instance and
the numbers of the certificate alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.claim import Claim
from sortedf.errors import CertificateError
from sortedf.joint_values import MOST_PAID, excess

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

LIMIT = 2**62
"""Prices and costs must stay below it, so that 64 bits hold them."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitCertificate(Claim):
    """A claimed lower bound, prices of KV, and their split among requests.

    Attributes
    ----------
    scale_bits : int
        `q`: prices are multiples of `2^-q`.
    end : int64 array, shape (K,)
        Last step of each stretch, ascending; the first begins with step 1.
    price : int64 array, shape (K,)
        `lambda_k 2^q`.
    own : int64 array, shape (nodes * K,)
        `z_mk 2^q`, by node.
    node, member : int64 arrays, shape (p,)
        Pairs of a node and a request below it.
    pays : int64 array, shape (p * K,)
        `x_imk 2^q`, by pair.
    value : int64 array, shape (n,) or empty
        `v_i 2^q`, from the arrival on; empty for the minima.
    """

    scale_bits: int
    end: Ints
    price: Ints
    own: Ints
    node: Ints
    member: Ints
    pays: Ints
    value: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def split_proves(instance: Instance, certificate: SplitCertificate) -> int:
    """Evaluate a certificate and return the lower bound that it proves.

    Raises
    ------
    CertificateError
        If the split or the values are not valid, or a number is out of range.
    """
    costs, rest = _costs_and_rest(instance, certificate)
    if len(certificate.value):
        over = _excess(instance, certificate, costs, rest)
        if over.any():
            i = int(np.argmax(over > 0))
            raise CertificateError(
                f"the values of request {i} and those of its leaf are higher than what "
                "they can cost."
            )
        total = exact_sum(certificate.value)
    else:
        total = sum(int(costs(i).min()) for i in range(instance.num_requests))
    total -= exact_sum(instance.arrival) << certificate.scale_bits
    length = np.diff(certificate.end, prepend=0)
    total -= instance.usable_kv * sum(
        p * d for p, d in zip(certificate.price.tolist(), length.tolist(), strict=True)
    )
    bound: int = -(-total >> certificate.scale_bits)
    return bound


def value_excess(instance: Instance, certificate: SplitCertificate) -> Ints:
    """Return by how much to lower the value of each request to make them valid."""
    return _excess(instance, certificate, *_costs_and_rest(instance, certificate))


def _costs_and_rest(
    instance: Instance, certificate: SplitCertificate
) -> tuple[Callable[[int], Ints], Ints]:
    """Check the split; return costs by start, and what is left of nodes' prices.

    The rest is by node, with a row of zeros for no node at the end.
    """
    shared, block = instance.prefixes, instance.engine.block_size
    if shared is None:
        raise CertificateError("no prompts share prefixes whose prices could be split.")
    steps, count = len(certificate.end), len(shared)
    length = np.diff(certificate.end, prepend=0)
    _refuse_bad(certificate, length, count)
    if len(certificate.value) not in (0, instance.num_requests):
        raise CertificateError(
            f"value has {len(certificate.value)} entries but must have none or "
            f"{instance.num_requests}."
        )
    price = certificate.price
    own = certificate.own.reshape(count, steps)
    pays = certificate.pays.reshape(-1, steps)
    budget = instance.usable_kv
    path = [shared.path(i) for i in range(instance.num_requests)]
    paid = [[0] * steps for _ in range(count)]
    by_request: list[list[int]] = [[] for _ in path]
    for pair, (m, i) in enumerate(
        zip(certificate.node.tolist(), certificate.member.tolist(), strict=True)
    ):
        if not 0 <= i < len(path) or m not in path[i]:
            raise CertificateError(f"pair {pair}: request {i} is not below node {m}.")
        by_request[i].append(pair)
        paid[m] = [a + b for a, b in zip(paid[m], pays[pair].tolist(), strict=True)]
    rest = np.zeros((count + 1, steps), dtype=np.int64)  # of no leaf at the end
    most_rest = MOST_PAID // int(length.sum() + 1)  # less is valid, too
    depth: list[int] = []
    for m, above in enumerate(shared.parent.tolist()):
        depth.append(int(shared.blocks[m]) + (depth[above] if above >= 0 else 0))
        room, size = budget - depth[m] * block, int(shared.blocks[m]) * block
        for k in range(steps):
            left = int(price[k]) * size - paid[m][k] - int(own[m, k]) * room
            rest[m, k] = min(max(left, 0), most_rest)
            if left < 0:
                raise CertificateError(
                    f"the requests below node {m} pay more than its price in stretch "
                    f"{k}."
                )

    def costs(i: int) -> Ints:
        s, o, a = (
            int(x[i]) for x in (instance.prefill, instance.decode, instance.arrival)
        )
        s -= depth[path[i][0]] * block if path[i] else 0
        token = price + own[path[i]].sum(axis=0)
        flat = pays[by_request[i]].sum(axis=0)
        return _start_costs(
            s, o, a, block, certificate.end, token, flat, certificate.scale_bits
        )

    return costs, rest


def _excess(
    instance: Instance,
    certificate: SplitCertificate,
    costs: Callable[[int], Ints],
    rest: Ints,
) -> Ints:
    """Return by how much the values of each request's leaf are too high."""
    shared, decode = instance.prefixes, instance.decode
    assert shared is not None
    groups: dict[int, list[int]] = {}
    for i in np.lexsort((np.arange(len(decode)), decode)).tolist():
        leaf = int(shared.leaf[i])
        # Requests without a leaf hold nothing together.
        groups.setdefault(leaf if leaf >= 0 else -1 - i, []).append(i)
    over = np.zeros(len(decode), dtype=np.int64)
    for leaf, ids in groups.items():
        members = (
            (int(decode[i]), int(instance.arrival[i]), costs(i),
             int(certificate.value[i]))
            for i in ids
        )  # fmt: skip
        over[ids] = excess(members, certificate.end, rest[max(leaf, -1)])
    return over


def _start_costs(
    s: int, o: int, a: int, block: int, ends: Ints, token: Ints, flat: Ints, bits: int
) -> Ints:
    """Return `2^q (t + o)` plus what is paid, for each start `t >= a` that can be best.

    Own tokens `s` are without shared ones. After the last price nothing is paid, so no
    start after that step is better than a start in it.

    A step of stretch `k` is within all `ends[m]`, `m >= k`, and the price there is the
    sum of the drops of the price after these ends. So each drop is paid for the steps
    up to its end: by a start `t <= end - o` for the whole answer, and by later ones for
    `end - t` steps. Sums in between may wrap around in 64 bits, the result does not.
    """
    last = int(ends[-1]) if len(ends) else 0
    most = o * (int(token.max(initial=0)) * (s + o + block) + int(flat.max(initial=0)))
    if most + ((max(a, last) + o) << bits) >= LIMIT:
        raise CertificateError("the prices are too large for exact 64-bit arithmetic.")
    if a >= last:
        return np.array([(a + o) << bits])
    steps = np.arange(o + 1)
    tokens = _rounded_sum(s + steps, block) - _rounded_sum(np.array(s), block)
    dropped, freed = -np.diff(token, append=0), -np.diff(flat, append=0)
    part = dropped[:, None] * tokens + freed[:, None] * steps
    cost = (np.arange(a, last + 1) + o) << bits
    whole = np.cumsum(part[::-1, o])[::-1]  # of all drops from this end on
    began = a
    for k, end in enumerate(ends.tolist()):
        if end - o >= began:
            cost[began - a : end - o - a + 1] += whole[k]
            began = end - o + 1
        first = max(a, end - o + 1)
        if first < end:
            cost[first - a : end - a] += part[k, end - first : 0 : -1]
    return cost


def _rounded_sum(tokens: Ints, block: int) -> Ints:
    """Sum of 1, 2, ..., `tokens`, each rounded up to whole blocks."""
    whole, rest = tokens // block, tokens % block
    return block * (block * (whole * (whole + 1) // 2) + rest * (whole + 1))


def _refuse_bad(certificate: SplitCertificate, length: Ints, count: int) -> None:
    """Raise if a number is out of range, or an array has the wrong length."""
    steps, pairs = len(length), len(certificate.node)
    sizes = {"price": steps, "own": count * steps, "member": pairs}
    sizes["pays"] = pairs * steps
    for name, size in sizes.items():
        if len(getattr(certificate, name)) != size:
            raise CertificateError(
                f"{name} has {len(getattr(certificate, name))} entries but must have "
                f"{size}."
            )
    if not 0 <= certificate.scale_bits <= 40:
        raise CertificateError(
            f"scale_bits = {certificate.scale_bits} but must be from 0 to 40."
        )
    if (length < 1).any() or int(certificate.end[-1:].sum()) > 2**31:
        raise CertificateError("end must ascend from 1 on, to 2^31 at most.")
    for name in ("price", "own", "pays"):
        values = getattr(certificate, name)
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < 2**50:
            raise CertificateError(f"{name} must hold integers from 0 to 2^50.")
    value = certificate.value
    if len(value) and not 0 <= int(value.min()) <= int(value.max()) < LIMIT:
        raise CertificateError("value must hold integers from 0 to 2^62.")
