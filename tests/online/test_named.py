"""Names with options, as people write them."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest

from online import prediction
from online.arrivals import ARRIVALS, arrive
from online.named import check_options, parse_many, parse_named
from online.policy import POLICIES, make_policy
from online.prediction import ERRORS
from online.predictors import PREDICTORS, make_predictor
from sortedf.traces import Trace


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
    with pytest.raises(ValueError, match=r"has no name|must be a name"):
        parse_named(text)


def test_an_option_twice():
    """Which one would count?"""
    with pytest.raises(ValueError, match="each option once"):
        parse_named("svf:backfill=1:backfill=2")


def built(least: int, share: float = 0.5, hard: bool = False, word: str | None = None):
    """Stand for what takes options."""


@pytest.mark.parametrize(
    "options",
    [
        {"least": 3},
        {"least": np.int64(3), "share": 1, "hard": True, "word": "a"},
        {"least": 3, "share": np.float64(0.2), "word": None},
    ],
)
def test_options_that_fit(options):
    """Numbers of numpy are numbers, and whole ones are numbers, too."""
    check_options("thing", "made", built, options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"least": 3, "most": 1}, "has no option 'most'; its options: least, share"),
        ({"least": 3.5}, "least = 3.5 but must be an integer"),
        ({"least": True}, "least = True but must be an integer"),
        ({"least": 1, "share": "abc"}, "share = 'abc' but must be a number"),
        ({"least": 1, "share": None}, "share = None but must be a number"),
        ({"least": 1, "hard": 1}, "hard = 1 but must be true or false"),
        ({"least": 1, "word": 2}, "word = 2 but must be a string or none"),
        ({}, "needs the option 'least'"),
    ],
)
def test_options_that_do_not(options, words):
    """The message says what it is, what it is called and what is allowed."""
    with pytest.raises(ValueError, match=f"thing 'made'.*{words}"):
        check_options("thing", "made", built, options)


def everything_named():
    """Whatever people choose by name with options, and how it is made."""
    trace = Trace([5, 6], [3, 2], [0.0, 4.0])
    make_policy("svf")  # fills the table
    by_name = [(name, make_policy, kind.make) for name, kind in POLICIES.items()]
    by_name += [(name, prediction.make, model) for name, model in ERRORS.items()]
    by_name += [(name, make_predictor, found) for name, found in PREDICTORS.items()]
    for name, kind in ARRIVALS.items():
        draw = partial(kind.draw, trace, 1.0, None)
        by_name.append((name, partial(arrive, trace, rate=1.0), draw))
    return by_name


@pytest.mark.parametrize(("name", "make", "maker"), everything_named())
def test_no_mistake_is_a_type_error(name, make, maker):
    """An unknown option, or one of a wrong type: errors that the command line knows."""
    with pytest.raises(ValueError, match="has no option 'nonsense'"):
        make(name, nonsense=1)
    for option in inspect.signature(maker).parameters:
        if option not in ("start_s", "start", "order"):  # arrays, for programs
            with pytest.raises(ValueError, match=option):
                make(name, **{option: [1]})
