"""Certificates of lower bounds: numbers from which a bound can be recomputed.

Growth rows are in `sortedf.growth_certificate`, rounded rows of the fluid bound in
`sortedf.row_certificate`. If a stream consists of independent parts, the sum of their
bounds holds for the whole, since leaving requests out only frees memory for the others:
a certificate may be the sum of those of the parts. The plain kind is prices of KV: for
any prices `lambda_t >= 0` of a token of KV in step `t`, with `w_ij` the tokens that
request `i` holds in its j-th step,

    D(lambda) = sum_i min_{t >= a_i} [t + o_i - a_i + sum_j lambda_{t+j} w_ij]
                - M sum_t lambda_t

is at most the TEL of every feasible schedule (the proof is in `lp.prices`, where such
prices are found). This file shares no code with it: `proven_bound` recomputes `D` from
the instance and the prices alone, whatever the source of the certificate and the bound
that it claims.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.atomic import atomic_path
from sortedf.capacity_certificate import CapacityCertificate, capacity_prove
from sortedf.charges import charged_instance
from sortedf.claim import Claim
from sortedf.errors import CertificateError
from sortedf.growth_certificate import GrowthCertificate, growth_rows_prove
from sortedf.json_values import read_json
from sortedf.machines_certificate import MachinesCertificate, machines_prove
from sortedf.row_certificate import RowCertificate, rows_prove
from sortedf.shown import shown_repr
from sortedf.split_certificate import SplitCertificate, split_proves

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

CHUNK = 4096
"""Start steps evaluated in one vectorised chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class Certificate(Claim):
    """A claimed lower bound and its proof by prices of KV.

    Attributes
    ----------
    scale_bits : int
        `q`: prices are multiples of `2^-q`.
    price : int64 array, shape (T,)
        `lambda_t 2^q` for the steps `t = 1, ..., T`.
    """

    scale_bits: int
    price: Ints


@dataclass(frozen=True, slots=True, eq=False)
class SumPart:
    """Some requests, and the certificate of a bound for them alone.

    Attributes
    ----------
    request : int64 array
        Their ids. In the instance that the certificate is about they are numbered in
        this order, and the first of them arrives at step 0.
    certificate : Claim
    """

    request: Ints
    certificate: Claim


@dataclass(frozen=True, slots=True, eq=False)
class SumCertificate(Claim):
    """A claim for a whole, and proofs for parts that have all its requests once.

    Attributes
    ----------
    part : tuple of SumPart
    """

    part: tuple[SumPart, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChargeCertificate(Claim):
    """A claimed lower bound, charges for shared prefixes, and a proof with them.

    Attributes
    ----------
    node, member, charge : int64 arrays of equal length
        What each request below a node is charged for it, in parts
        of a token (`sortedf.charges.UNIT`).
    part : tuple of SumPart
        One: all requests, and the certificate of a bound with charged prompts.
    """

    node: Ints
    member: Ints
    charge: Ints
    part: tuple[SumPart, ...]


KINDS: dict[str, type[Any]] = {
    "sortedf dual prices": Certificate,
    "sortedf growth prices": GrowthCertificate,
    "sortedf fluid rows": RowCertificate,
    "sortedf machines": MachinesCertificate,
    "sortedf capacity prices": CapacityCertificate,
    "sortedf shared charges": ChargeCertificate,
    "sortedf shared prices": SplitCertificate,
    "sortedf sum of parts": SumCertificate,
}
"""Classes by the value of `kind` in a certificate's file."""


def instance_hash(instance: Instance) -> str:
    """SHA-256 over everything that a lower bound depends on, as hexadecimal."""
    engine = instance.engine
    numbers = [instance.kv_budget, engine.block_size]
    numbers += [engine.max_num_seqs or 0, engine.max_batched_tokens or 0]
    digest = hashlib.sha256(json.dumps(numbers).encode())
    for array in (instance.prefill, instance.decode, instance.arrival):
        digest.update(array.astype("<i8").tobytes())
    if (shared := instance.prefixes) is not None:
        for array in (shared.parent, shared.blocks, shared.leaf):
            digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def proven_bound(instance: Instance, certificate: Claim) -> int:
    """Evaluate a certificate and return the lower bound that it proves.

    It can be below or above the certificate's own claim.

    Raises
    ------
    CertificateError
        If the certificate is for another instance, or its numbers are out of range or
        too large for exact arithmetic.
    """
    if certificate.instance_hash != instance_hash(instance):
        raise CertificateError(
            "the certificate is for another instance: requests, KV budget, arrivals "
            "and engine parameters must be the same."
        )
    if instance.prefixes is not None and not isinstance(certificate, KNOW_PREFIXES):
        raise CertificateError(
            "the certificate does not know the prefixes that prompts share."
        )
    return PROOFS[type(certificate)](instance, certificate)


def _parts_prove(instance: Instance, certificate: SumCertificate) -> int:
    """Add up what is proven for each part, if every request is in just one."""
    ids = sorted(i for part in certificate.part for i in part.request.tolist())
    if ids != list(range(instance.num_requests)):
        raise CertificateError(
            f"the parts must have each of the {instance.num_requests} requests once."
        )
    total = 0
    for part in certificate.part:
        if isinstance(part.certificate, SumCertificate):
            raise CertificateError("a part must not be a sum of parts itself.")
        if len(part.request):
            own = instance.subset(part.request)
            own = own.replace(arrival=own.arrival - own.arrival.min())
            total += proven_bound(own, part.certificate)
    return total


def _charges_prove(instance: Instance, certificate: ChargeCertificate) -> int:
    """Evaluate the certificate for the instance with charged prompts."""
    alone = charged_instance(
        instance, certificate.node, certificate.member, certificate.charge
    )
    if len(certificate.part) != 1:
        raise CertificateError("charges need one part, with all requests.")
    part = certificate.part[0]
    if part.request.tolist() != list(range(instance.num_requests)):
        raise CertificateError("the part must have all requests in order.")
    if isinstance(part.certificate, ChargeCertificate):
        raise CertificateError("a part of charges must not have charges itself.")
    return proven_bound(alone, part.certificate)


def _prices_prove(instance: Instance, certificate: Certificate) -> int:
    """Evaluate `D(lambda)`."""
    price, bits = certificate.price, certificate.scale_bits
    _refuse_bad_prices(instance, price, bits)
    lengths = zip(
        instance.prefill.tolist(),
        instance.decode.tolist(),
        instance.arrival.tolist(),
        strict=True,
    )
    sums = np.concatenate([[0], np.cumsum(price)])
    moments = np.concatenate([[0], np.cumsum(price * np.arange(1, len(price) + 1))])
    total = -instance.usable_kv * sum(price.tolist())
    for s, o, a in lengths:
        total += _least_bracket(s, o, a, bits, sums, moments, instance) - (a << bits)
    bound: int = -(-total >> bits)
    return bound


def _least_bracket(
    s: int, o: int, a: int, bits: int, sums: Ints, moments: Ints, instance: Instance
) -> int:
    """Least `2^q (t + o + price of the KV)` over all starts `t >= a`.

    After the last price KV costs nothing, so no start after that step is better than a
    start in it; and no bracket is below its `t + o`.
    """
    last = len(sums) - 1
    best = (max(a, last) + o) << bits
    for first in range(a, last, CHUNK):
        if (first + o) << bits >= best:
            break
        t = np.arange(first, min(first + CHUNK, last))
        if instance.engine.block_size == 1:
            high = np.minimum(t + o, last)
            cost = (s - t) * (sums[high] - sums[t]) + moments[high] - moments[t]
        else:
            cost = np.zeros(len(t), dtype=np.int64)
            for tokens, begin, end in _stairs(s, o, instance.engine.block_size):
                low, high = np.minimum(t + begin, last), np.minimum(t + end, last)
                cost += tokens * (sums[high] - sums[low])
        best = min(best, int(((t + o << bits) + cost).min()))
    return best


def _stairs(s: int, o: int, block: int) -> list[tuple[int, int, int]]:
    """Split a request's steps `begin < j <= end` by the tokens that it holds."""
    stairs = []
    begin = 0
    while begin < o:
        tokens = -(-(s + begin + 1) // block) * block
        end = min(tokens - s, o)
        stairs.append((tokens, begin, end))
        begin = end
    return stairs


def _refuse_bad_prices(instance: Instance, price: Ints, bits: int) -> None:
    """Raise if a price is out of range or a bracket could exceed 64 bits.

    Intermediate sums may wrap around; a bracket that fits 64 bits is still right.
    """
    if len(price) and int(price.min()) < 0:
        t = int(np.argmax(price < 0))
        raise CertificateError(f"price[{t}] = {price[t]} but must be 0 or more.")
    if not 0 <= bits <= 62:
        raise CertificateError(f"scale_bits = {bits} but must be from 0 to 62.")
    if not instance.num_requests:
        return
    pairs = zip(instance.decode.tolist(), instance.peak.tolist(), strict=True)
    largest = max(o * peak for o, peak in pairs)
    last = max(len(price), int(instance.arrival.max())) + int(instance.decode.max())
    if (last << bits) + int(price.max(initial=0)) * largest >= 2**63:
        raise CertificateError("the prices are too large for exact 64-bit arithmetic.")


PROOFS: dict[type[Claim], Callable[[Instance, Any], int]] = {
    Certificate: _prices_prove,
    GrowthCertificate: growth_rows_prove,
    RowCertificate: rows_prove,
    MachinesCertificate: lambda instance, _: machines_prove(instance),
    CapacityCertificate: capacity_prove,
    ChargeCertificate: _charges_prove,
    SplitCertificate: split_proves,
    SumCertificate: _parts_prove,
}
"""What evaluates each kind of certificate."""

KNOW_PREFIXES = (ChargeCertificate, SplitCertificate, SumCertificate)
"""Kinds whose proofs hold where prompts share prefixes."""


def write_certificate(certificate: Claim, path: str | PathLike[str]) -> None:
    """Write a certificate as one JSON object, atomically."""
    content = _content(certificate)
    with atomic_path(path) as unfinished:
        unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")


def _content(certificate: Claim) -> dict[str, Any]:
    kind = next(name for name, each in KINDS.items() if type(certificate) is each)
    content: dict[str, Any] = {"kind": kind}
    for field in fields(certificate):
        value = getattr(certificate, field.name)
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(value, tuple):
            plain = [
                {"request": part.request.tolist(), **_content(part.certificate)}
                for part in value
            ]
        content[_KEYS.get(field.name, field.name)] = plain
    return content


def read_certificate(path: str | PathLike[str]) -> Claim:
    """Read a certificate of any kind.

    Raises
    ------
    CertificateError
        If the file cannot be read or is no certificate; the message names the field.
    """
    return _from_content(str(path), read_json(path, CertificateError))


def _from_content(name: str, content: object) -> Claim:
    if not isinstance(content, dict):
        raise CertificateError(f"{name} must hold one JSON object.")
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise CertificateError(
            f"{name}: 'kind' is {shown_repr(kind)} but must be one of: "
            f"{', '.join(KINDS)}."
        )
    values = {
        field.name: _value(name, content, field.name, str(field.type))
        for field in fields(KINDS[kind])
        if field.default is MISSING or field.name in content
    }
    certificate: Claim = KINDS[kind](**values)
    return certificate


_KEYS = {"instance_hash": "instance_sha256", "bound": "lower_bound"}
"""Keys in the file of the fields that have another name there."""


def _value(name: str, content: dict[str, Any], field: str, declared: str) -> Any:
    """Take one field of a certificate from the file's content."""
    key = _KEYS.get(field, field)
    expected: type = {"str": str, "int": int}.get(declared, list)
    value = content.get(key)
    if not isinstance(value, expected) or isinstance(value, bool):
        raise CertificateError(
            f"{name}: {key!r} is missing or is no {expected.__name__}."
        )
    if not isinstance(value, list):
        return value
    if declared.startswith("tuple"):
        return tuple(_part(f"{name}: {key}[{k}]", one) for k, one in enumerate(value))
    for t, entry in enumerate(value):
        if type(entry) is not int or not 0 <= entry < 2**62:
            raise CertificateError(
                f"{name}: {key}[{t}] = {shown_repr(entry)} but must be an integer "
                "from 0 on."
            )
    return np.array(value, dtype=np.int64)


def _part(name: str, content: object) -> SumPart:
    certificate = _from_content(name, content)
    if isinstance(certificate, SumCertificate) or not isinstance(content, dict):
        raise CertificateError(f"{name} must not be a sum of parts itself.")
    return SumPart(_value(name, content, "request", "Ints"), certificate)
