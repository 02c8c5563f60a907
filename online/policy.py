"""The table of policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from online.named import check_options
from online.starvation import BoundedWait
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from online.state import Policy


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A policy with what people want to know before they choose it.

    Attributes
    ----------
    make : callable
        Makes a fresh object; options by keyword.
    about : str
        What it does, in a few words.
    knows : str
        What it has to know of an answer's length: "nothing", "a rank", "a length".
    needs_plan : bool
        Whether it follows an offline schedule, which is one of its options: such a
        policy is made from Python, or by `sortedf run --mode`.
    """

    make: Callable[..., Policy]
    about: str
    knows: str
    needs_plan: bool = False


POLICIES: Table[PolicyKind] = Table("policy", "online.policies")
"""Every policy, by the name that `simulate`, `run` and the engine take."""


def register_policy(
    name: str, *, about: str, knows: str, needs_plan: bool = False
) -> Callable[[Callable[..., Policy]], Callable[..., Policy]]:
    """Return a decorator that enters a policy's maker into the table."""

    def add(make: Callable[..., Policy]) -> Callable[..., Policy]:
        POLICIES.register(name)(PolicyKind(make, about, knows, needs_plan))
        return make

    return add


def make_policy(
    name: str, *, max_wait_s: float | None = None, **options: Any
) -> Policy:
    """Make a policy by name.

    Parameters
    ----------
    name : str
        One of `POLICIES`.
    max_wait_s : float, optional
        A request that has waited longer than this goes before all others, and nothing
        else starts until it has.
    **options
        Options of that policy; an unknown one is refused with the list of known ones.

    Examples
    --------
    >>> type(make_policy("svf")).__name__
    'ListPolicy'
    """
    kind = POLICIES.find(name)
    check_options("policy", name, kind.make, options)
    policy = kind.make(**options)
    return policy if max_wait_s is None else BoundedWait(policy, max_wait_s)
