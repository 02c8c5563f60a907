"""Certificates of the bound by prices of a step's capacities, for instances in steps.

The proof is in `sortedf.engine_plan.stepwise_certificate`: prices of a request, a block
and a processed token that do not increase from step to step prove a bound for every
schedule of an engine, and schedules of an instance are among them. Arrivals are
subtracted: setting them to 0 excludes no schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sortedf.claim import Claim
from sortedf.engine_plan.of_instance import workload_of
from sortedf.engine_plan.seconds_certificate import MIX_SCALE, UNITS
from sortedf.engine_plan.stepwise_certificate import StepwiseCertificate, stepwise_prove

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CapacityCertificate(Claim):
    """A claimed lower bound and its proof by prices of each step.

    Attributes
    ----------
    end : int64 array
        Last step of each stretch of steps with equal prices, ascending.
    request_price, block_price, token_price : int64 arrays of the same length
        In steps, over `sortedf.engine_plan.stepwise_certificate.PRICE_SCALE`.
    """

    end: Ints
    request_price: Ints
    block_price: Ints
    token_price: Ints


def capacity_prove(instance: Instance, certificate: CapacityCertificate) -> int:
    """Evaluate the prices exactly and round up.

    Raises
    ------
    CertificateError
        If ends or prices are out of range.
    """
    workload = workload_of(instance)
    columns = (
        certificate.request_price, certificate.block_price, certificate.token_price
    )  # fmt: skip
    length = {len(column) for column in columns}
    prices = tuple(zip(*(c.tolist() for c in columns), strict=False))
    if len(length) != 1:
        prices = ()  # of no use for any ends: refused there
    stepwise = StepwiseCertificate(
        workload.sha256(),
        0,
        (MIX_SCALE,),
        (UNITS, 0, 0, 0),
        tuple(certificate.end.tolist()),
        prices,
    )
    steps = -(-stepwise_prove(workload, stepwise) // UNITS)
    arrived: int = sum(instance.arrival.tolist())
    least: int = sum(instance.decode.tolist())
    return max(steps - arrived, least)
