"""The table of policies."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from online.named import check_options
from online.passing import BoundedPassing
from online.starvation import BoundedWait
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from online.state import Policy


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A policy with its description.

    Attributes
    ----------
    make : callable
        Creates a new policy object; options by keyword.
    about : str
        Short description.
    knows : str
        Required knowledge of answer lengths: "nothing", "a rank", "a length".
    needs_plan : bool
        Whether it follows an offline schedule, which is one of its options: such a
        policy is created from Python, or by `sortedf run --mode`.
    """

    make: Callable[..., Policy]
    about: str
    knows: str
    needs_plan: bool = False

    @property
    def options(self) -> list[str]:
        """Names of its options."""
        return list(inspect.signature(self.make).parameters)


POLICIES: Table[PolicyKind] = Table("policy", "online.policies")
"""Policies by the name used in `simulate`, `run` and the engine."""


def register_policy(
    name: str, *, about: str, knows: str, needs_plan: bool = False
) -> Callable[[Callable[..., Policy]], Callable[..., Policy]]:
    """Return a decorator that registers a policy."""

    def add(make: Callable[..., Policy]) -> Callable[..., Policy]:
        POLICIES.register(name)(PolicyKind(make, about, knows, needs_plan))
        return make

    return add


def make_policy(
    name: str,
    *,
    max_wait_s: float | None = None,
    max_passed: float | None = None,
    **options: Any,
) -> Policy:
    """Create a policy by name.

    Parameters
    ----------
    name : str
        One of `POLICIES`.
    max_wait_s : float, optional
        A request that has waited longer than this is served before all others, and no
        other request starts until it has started.
    max_passed : float, optional
        A request is served before all others once later ones got more than this
        multiple of the service that earlier ones got while it waited.
    **options
        Options of that policy; an unknown one raises ValueError with the known ones.

    Examples
    --------
    >>> type(make_policy("svf")).__name__
    'ListPolicy'
    """
    kind = POLICIES.find(name)
    check_options("policy", name, kind.make, options)
    policy = kind.make(**options)
    if max_passed is not None:
        policy = BoundedPassing(policy, max_passed)
    return policy if max_wait_s is None else BoundedWait(policy, max_wait_s)
