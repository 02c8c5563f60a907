"""What every certificate of a bound on TEL begins with: the instance and the claim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A claimed lower bound on the TEL of an instance.

    Attributes
    ----------
    instance_hash : str
        `sortedf.certificate.instance_hash` of the instance that the bound is for.
    bound : int
        The claimed lower bound on TEL.
    """

    instance_hash: str
    bound: int
