"""The policy protocol, and the table of policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from online.named import check_options
from sortedf.registry import lookup, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from online.state import Decision, State


class Policy(Protocol):
    """Decides before each step which requests start and which are evicted.

    One object serves one run, in the simulator or in an engine. It is asked before
    every step, or, where its last answer says so (`Decision.quiet_until`), only when
    something has happened. So it may keep what it derives from the snapshots (a sorted
    queue) as long as `joined`, `left` and `changed` are applied to it; it never changes
    a snapshot.
    """

    def decide(self, state: State) -> Decision:
        """Answer what is to be done in the step that follows `state`."""
        ...


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
    """

    make: Callable[..., Policy]
    about: str
    knows: str


POLICIES: dict[str, PolicyKind] = {}
"""Every policy, by the name that `simulate`, `run` and the engine take."""


def register_policy(
    name: str, *, about: str, knows: str
) -> Callable[[Callable[..., Policy]], Callable[..., Policy]]:
    """Return a decorator that enters a policy's maker into the table."""

    def add(make: Callable[..., Policy]) -> Callable[..., Policy]:
        register(POLICIES, "policy", name)(PolicyKind(make, about, knows))
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
    import online.policies  # noqa: F401  registers them; imports this module
    from online.starvation import BoundedWait

    kind = lookup(POLICIES, "policy", name)
    check_options("policy", name, kind.make, options)
    policy = kind.make(**options)
    return policy if max_wait_s is None else BoundedWait(policy, max_wait_s)
