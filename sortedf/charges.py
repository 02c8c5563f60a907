"""Charges for shared prefixes, by which bounds without them hold with them.

Each request below a node is charged for a part of the node's tokens. The charges are
valid if those of any requests that can run together add up to the node's tokens at
most. Then in every step the own tokens of the running requests and their charges
together are at most the KV held, so that each schedule of the instance is one of the
instance without shared prefixes in which a prompt is the request's own part and its
charges, rounded down; and every bound for that instance holds.

Of the `g` requests below a node at most `q` run together: no more than `max_num_seqs`,
and as many as the smallest own parts, one token each made, fit beside the node and the
nodes above it. The largest `q` charges of a node must add up to its tokens at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.engine_model import EngineModel
from sortedf.errors import CertificateError
from sortedf.instance import Instance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

UNIT = 2**20
"""Charges are multiples of one token over this."""


def charged_instance(
    instance: Instance, node: Ints, member: Ints, charge: Ints
) -> Instance:
    """Return the instance without shared prefixes, with charged prompts.

    Raises
    ------
    CertificateError
        If a charge is not valid.
    """
    shared = instance.prefixes
    if shared is None:
        if len(node):
            raise CertificateError("no prompts share prefixes to be charged for.")
        return instance
    if not len(node) == len(member) == len(charge):
        raise CertificateError("node, member and charge must be equally long.")
    block = instance.engine.block_size
    own = [
        s - block * sum(int(shared.blocks[k]) for k in shared.path(i))
        for i, s in enumerate(instance.prefill.tolist())
    ]
    charged: dict[int, dict[int, int]] = {}
    below: dict[int, list[int]] = {}
    for i in range(instance.num_requests):
        for k in shared.path(i):
            below.setdefault(k, []).append(i)
    for k, i, tokens in zip(
        node.tolist(), member.tolist(), charge.tolist(), strict=True
    ):
        if i not in below.get(k, ()) or i in charged.get(k, {}):
            raise CertificateError(
                f"request {i} is not below node {k}, or is charged for it twice."
            )
        if tokens < 0:
            raise CertificateError(f"a charge is {tokens} but must be 0 or more.")
        charged.setdefault(k, {})[i] = tokens
    total = [0] * instance.num_requests
    for k, charges in charged.items():
        most = num_together(instance, k, [own[i] for i in below[k]])
        largest = sorted(charges.values(), reverse=True)[:most]
        if sum(largest) > int(shared.blocks[k]) * block * UNIT:
            raise CertificateError(
                f"node {k} has {shared.blocks[k]} blocks but {most} requests that may "
                f"run together are charged for {sum(largest) / UNIT / block:.3f}."
            )
        for i, tokens in charges.items():
            total[i] += tokens
    prefill = [s + extra // UNIT for s, extra in zip(own, total, strict=True)]
    engine = EngineModel(instance.usable_kv, max_num_seqs=instance.engine.max_num_seqs)
    return Instance(
        np.array(prefill, dtype=np.int64),
        instance.decode,
        arrival=instance.arrival,
        engine=engine,
    )


def num_together(instance: Instance, node: int, own: list[int]) -> int:
    """Most requests below a node, with these own prompts, that can run in one step."""
    shared, block = instance.prefixes, instance.engine.block_size
    assert shared is not None
    room = instance.usable_kv // block
    above = node
    while above >= 0:
        room -= int(shared.blocks[above])
        above = int(shared.parent[above])
    count = 0
    for s in sorted(own):
        room -= -(-(s + 1) // block)
        if room < 0:
            break
        count += 1
    return min(count, instance.engine.max_num_seqs or count)
