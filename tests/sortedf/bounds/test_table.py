"""The table of bounds: what an entry says is what every reader of it does."""

from __future__ import annotations

import json
import re

import pytest

from sortedf import BOUNDS, Instance, bound
from sortedf.bounds import Bound, BoundOptions, Stage, register_bound
from sortedf.bounds.table import always, certified_bounds, quick_bounds
from sortedf.certificate import proven_bound


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    text = "prefill_tokens,decode_tokens\n5,3\n6,2\n1,1\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def own_bounds():
    """Two bounds of another package: one at least as good as any, without a proof."""

    @register_bound(
        "lucky",
        about="the number of requests",
        cost="O(1)",
        certified=False,
        quick=always,
        stage=Stage.CLOSED_FORM,
    )
    def lucky(instance: Instance, options: BoundOptions) -> Bound:
        return Bound(10 * instance.num_requests)

    @register_bound("forgetful", about="nothing", cost="O(1)")
    def forgetful(instance: Instance, options: BoundOptions) -> Bound:
        return Bound(0)

    yield
    BOUNDS.remove("lucky")
    BOUNDS.remove("forgetful")


INSTANCE = Instance([5, 6, 1, 4, 3], [3, 2, 1, 2, 4], 10)


@pytest.mark.usefixtures("own_bounds")
def test_a_bound_of_another_package_is_seen_everywhere(cli, trace):
    """In the help of each command that takes one, in the list, and in errors."""
    for command in ("bound", "solve", "compare"):
        assert re.search(r"\blucky\b", cli(command, "--help")[1])
    rows = json.loads(cli("bounds", "--json")[1])["rows"]
    assert [row["bound"] for row in rows] == list(BOUNDS)
    assert {row["bound"]: row["certified"] for row in rows}["lucky"] is False
    assert "the number of requests" in cli("bounds")[1]
    code, _, err = cli("bound", trace, "--kv-budget", 10, "--method", "x")
    assert (code, err.count("lucky")) == (2, 1)


@pytest.mark.usefixtures("own_bounds")
def test_auto_takes_a_bound_where_it_says_that_it_is_quick(cli, trace, tmp_path):
    """And leaves it out where a certificate is asked for."""
    assert "lucky" in quick_bounds(INSTANCE, None)
    assert (bound(INSTANCE).method, bound(INSTANCE).value) == ("lucky", 50)
    found = bound(INSTANCE, certified=True)
    assert proven_bound(INSTANCE, found.certificate) == found.value
    assert "lucky" not in certified_bounds()


@pytest.mark.usefixtures("own_bounds")
@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("lucky", "the bound 'lucky' has none; choose one of: auto, "),
        ("branching", "the bound 'branching' has none; choose one of: auto"),
        ("forgetful", "the bound 'forgetful' has none"),
    ],
)
def test_no_certificate_is_said_in_a_line(cli, trace, tmp_path, method, message):
    """A bound that was not in a list of names ended in a traceback."""
    path = tmp_path / "proof.json"
    code, out, err = cli(
        "bound", trace, "--kv-budget", 10, "--method", method, "--certificate", path
    )
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert not path.exists()
