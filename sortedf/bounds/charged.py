"""Bounds where prompts share prefixes, by charging each request for a part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds.proving import prove
from sortedf.bounds.table import Bound, always, register_bound
from sortedf.certificate import ChargeCertificate, SumPart, instance_hash
from sortedf.charges import UNIT, charged_instance, num_together
from sortedf.segments import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]


SHARE_OF_TIME = 0.25
"""Share of the time limit taken; in "auto" the rest is for `split-prices`, which is
usually better.
"""


@register_bound(
    "own-parts",
    about="what prompts share left out, then the best of the other bounds",
    cost="as the others",
    shared=True,
)
def own_parts(instance: Instance, options: BoundOptions) -> Bound:
    """Bound the requests without what they share: no schedule holds less."""
    nothing = np.zeros(0, dtype=np.int64)
    return _charged_bound(instance, nothing, nothing, nothing, options)


@register_bound(
    "equal-charges",
    about="each request charged an equal part of its prefix, then as own-parts",
    cost="as the others",
    quick=always,
    shared=True,
)
def equal_charges(instance: Instance, options: BoundOptions) -> Bound:
    """Charge each request below a node for `1 / q` of it.

    `q` is the largest number of them that can run together, so that the charges of
    running requests are at most the node (`sortedf.charges`).
    """
    return _charged_bound(instance, *_equal(instance), options)


def _equal(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """Return node, member and charge of equal parts."""
    shared = instance.prefixes
    if shared is None:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    block = instance.engine.block_size
    own = instance.prefill - shared.request_blocks * block
    node, member, charge = [], [], []
    for k, ids in enumerate(shared.members()):
        most = num_together(instance, k, own[ids].tolist())
        node.append(np.full(len(ids), k))
        member.append(ids)
        part = int(shared.blocks[k]) * block * UNIT // most
        charge.append(np.full(len(ids), part))
    return np.concatenate(node), np.concatenate(member), np.concatenate(charge)


def _charged_bound(
    instance: Instance,
    node: Ints,
    member: Ints,
    charge: Ints,
    options: BoundOptions,
) -> Bound:
    """Best of the bounds for the instance with charged prompts."""
    options = options.with_share_of_time(SHARE_OF_TIME)
    alone = charged_instance(instance, node, member, charge)
    found = prove(whole(alone), "auto", options, certified=True)[0]
    assert found.certificate is not None
    charged = SumPart(np.arange(instance.num_requests), found.certificate)
    certificate = ChargeCertificate(
        instance_hash(instance), found.value, node, member, charge, (charged,)
    )
    return Bound(found.value, certificate, interrupted=found.interrupted)
