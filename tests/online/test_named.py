"""Names with options, as people write them."""

from __future__ import annotations

import pytest

from online.named import parse_many, parse_named


def test_values_become_what_they_look_like():
    """Numbers, words for true, false and nothing, and text."""
    text = "uniboost:gamma=0.5:k=64:mem-guard=false:limit=none:rule=restart"
    found = parse_named(text)
    assert found.name == "uniboost"
    assert found.options == {
        "gamma": 0.5, "k": 64, "mem_guard": False, "limit": None, "rule": "restart",
    }  # fmt: skip
    assert str(found) == text.replace("mem-guard", "mem_guard")
    assert parse_named(str(found)) == found


def test_each_name_once():
    """The same with other options is another one."""
    found = parse_many("svf, fcfs,svf:backfill=2,svf,svf:backfill=2")
    assert [str(one) for one in found] == ["svf", "fcfs", "svf:backfill=2"]


@pytest.mark.parametrize("text", ["", " ", ":gamma=1", "svf:gamma", "svf:=1", "svf:a="])
def test_mistakes(text):
    """The message shows how it is written."""
    with pytest.raises(ValueError, match=r"names nothing|must be a name"):
        parse_named(text)


def test_an_option_twice():
    """Which one would count?"""
    with pytest.raises(ValueError, match="each option once"):
        parse_named("svf:backfill=1:backfill=2")
