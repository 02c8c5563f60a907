"""Instance: checked once, frozen, and exact about what is wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sortedf import EngineModel, Instance, OversizeError

GOOD = {"prefill": [3, 1], "decode": [2, 4], "kv_budget": 8}


def test_holds_read_only_int64_copies():
    """Changing the caller's array later changes nothing, and arrays are read-only."""
    prefill = np.array([3, 1])
    instance = Instance(prefill, [2, 4], 8)
    prefill[0] = 99
    assert instance.prefill.tolist() == [3, 1]
    for array in (instance.prefill, instance.decode, instance.arrival):
        assert array.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_pickling_gives_back_a_frozen_instance():
    """Worker processes get the same checks."""
    engine = EngineModel(8, block_size=4, max_num_seqs=3, max_batched_tokens=9)
    instance = Instance([3, 1], [2, 4], 8, [0, 5], engine)
    copy = pickle.loads(pickle.dumps(instance))
    assert not copy.prefill.flags.writeable
    assert copy.arrival.tolist() == [0, 5]
    assert copy.engine == engine


def test_arrivals_are_zero_for_a_backlog():
    """Without arrivals everything is there at step 0."""
    assert Instance(**GOOD).is_backlog
    assert not Instance(**GOOD, arrival=[0, 1]).is_backlog


def test_whole_floats_are_integers():
    """A column that pandas turned into floats is accepted where it is whole."""
    assert Instance([3.0, 1.0], [2, 4], 8).prefill.tolist() == [3, 1]


@pytest.mark.parametrize("name", ["prefill", "decode"])
@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0, ValueError, "0"),
        (-5, ValueError, "-5"),
        (1.5, ValueError, "1.5"),
        (float("nan"), ValueError, "nan"),
        (float("inf"), ValueError, "inf"),
        (1e30, ValueError, r"1e\+30"),
        (10**30, ValueError, "1" + 30 * "0"),
        (2**31, ValueError, "2147483648"),
    ],
)
def test_bad_length_is_named_with_index_value_and_range(name, value, error, shown):
    """Which entry, what it is, and what is allowed."""
    arrays = {**GOOD, name: [1, value]}
    message = rf"^{name}\[1\] = {shown} but must be an integer from 1 to 2147483647\.$"
    with pytest.raises(error, match=message):
        Instance(**arrays)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["a", "b"], "prefill must hold integers but has dtype <U1"),
        ([True, False], "prefill must hold integers but has dtype bool"),
        ([None, 1], r"prefill\[0\] = None but must be an integer"),
        ([10**30, "x"], r"prefill\[0\] = 1000"),
        ([1 + 2j, 1], "prefill must hold integers but has dtype complex128"),
    ],
)
def test_what_is_no_number_is_a_type_error(value, message):
    """Strings, booleans and None are no lengths."""
    with pytest.raises((TypeError, ValueError), match=message):
        Instance(value, [1, 1], 8)


@pytest.mark.parametrize("value", [[[1], [1, 2]], [[1, 2], [3, 4]], 5])
def test_only_one_dimension(value):
    """A table or a number alone is refused."""
    with pytest.raises(ValueError, match="one-dimensional"):
        Instance(value, [1, 1], 8)


def test_rows_of_unequal_length_are_refused():
    """Each request has a prompt, an answer and an arrival."""
    with pytest.raises(ValueError, match="decode has 3 entries but prefill has 2"):
        Instance([1, 1], [1, 1, 1], 8)
    with pytest.raises(ValueError, match="arrival has 1 entries but prefill has 2"):
        Instance([1, 1], [1, 1], 8, [0])


@pytest.mark.parametrize("budget", [0, -1, 2.5, float("nan"), 2**31])
def test_bad_budget(budget):
    """The budget is a positive number of tokens."""
    with pytest.raises(
        ValueError, match=r"kv_budget = .* integer from 1 to 2147483647"
    ):
        Instance([1], [1], budget)


@pytest.mark.parametrize("budget", ["8", None, True])
def test_budget_of_another_type(budget):
    """Strings and booleans are no budgets."""
    with pytest.raises(TypeError, match="kv_budget must be an integer"):
        Instance([1], [1], budget)


@pytest.mark.parametrize("arrival", [[-1, 0], [0, float("nan")], [0, 1e30]])
def test_bad_arrival(arrival):
    """Arrivals are steps, from 0."""
    with pytest.raises(ValueError, match=r"arrival\[\d\] = .* from 0 to"):
        Instance([1, 1], [1, 1], 8, arrival)


def test_requests_that_can_never_run_are_named():
    """Count, the first five with s, o and need, and the budget."""
    with pytest.raises(OversizeError) as caught:
        Instance([1, *range(5, 12)], [4] * 8, 8)
    assert caught.value.request_ids == (1, 2, 3, 4, 5, 6, 7)
    assert str(caught.value) == (
        "7 of 8 requests can never run with kv_budget=8: request 1 (s=5, o=4, "
        "needs 9); request 2 (s=6, o=4, needs 10); request 3 (s=7, o=4, needs 11); "
        "request 4 (s=8, o=4, needs 12); request 5 (s=9, o=4, needs 13), ..."
    )
    assert pickle.loads(pickle.dumps(caught.value)).request_ids[0] == 1


def test_blocks_count_whole():
    """9 tokens need three blocks of 4, and a budget of 11 has only two."""
    with pytest.raises(OversizeError, match="needs 12"):
        Instance([5], [4], engine=EngineModel(11, block_size=4))
    enough = Instance([5], [4], engine=EngineModel(12, block_size=4))
    assert enough.peak.tolist() == [12]


def test_prompt_above_the_step_budget_can_never_run():
    """Prompts are not cut into chunks in this model."""
    engine = EngineModel(100, max_batched_tokens=4)
    with pytest.raises(OversizeError, match="max_batched_tokens=4"):
        Instance([5], [1], engine=engine)


def test_the_budget_and_the_engine_agree():
    """A budget alone is the papers' engine; with an engine it says the same."""
    engine = EngineModel(12, block_size=4)
    assert Instance([5], [4], 12).engine == EngineModel(12)
    for instance in (
        Instance([5], [4], 12, engine=engine),
        Instance([5], [4], None, engine=engine),
    ):
        assert (instance.kv_budget, instance.engine) == (12, engine)
    with pytest.raises(ValueError, match="kv_budget = 16 but the engine has 12"):
        Instance([5], [4], 16, engine=engine)
    with pytest.raises(TypeError, match="kv_budget"):
        Instance([5], [4])
    larger = instance.replace(kv_budget=20)
    assert (larger.kv_budget, larger.engine) == (20, EngineModel(20, block_size=4))
    other = instance.replace(engine=EngineModel(16))
    assert (other.kv_budget, other.engine) == (16, EngineModel(16))


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({"chunked_prefill": True, "max_batched_tokens": 8}, "chunked_prefill"),
        ({"counts_new_token": False}, "counts_new_token"),
        ({"long_prefill_token_threshold": 4}, "long_prefill_token_threshold"),
        ({"watermark": 0.1}, "watermark"),
        ({"prefix_caching": True, "max_batched_tokens": 8}, "prefix_caching"),
    ],
)
def test_rules_that_a_schedule_cannot_follow_are_named(rules, named):
    """They are refused, not left out of account."""
    with pytest.raises(ValueError, match=rf"do not know yet: .*\({named}\)"):
        Instance([5], [4], engine=EngineModel(20, **rules))


def test_subset_and_replace_check_again():
    """Variants are instances like any other."""
    instance = Instance([3, 1], [2, 4], 8, [0, 5])
    assert instance.subset([1]).arrival.tolist() == [5]
    with pytest.raises(OversizeError):
        instance.replace(kv_budget=4)


def test_engine_of_another_type():
    """A dict of parameters is no engine model."""
    with pytest.raises(TypeError, match="engine must be an EngineModel"):
        Instance([1], [1], 8, engine={"block_size": 2})


def test_subset_takes_ids_or_a_mask():
    """A mask was read as the ids 0 and 1: the first two requests again and again."""
    instance = Instance([3, 1, 2], [2, 4, 5], 8, [0, 5, 6])
    for ids in ([2, 0], np.array([2, 0], np.uint8), (2.0, 0.0)):
        assert instance.subset(ids).prefill.tolist() == [2, 3]
    for mask in ([True, False, True], np.array([1, 0, 1], bool)):
        assert instance.subset(mask).arrival.tolist() == [0, 6]
    assert instance.subset([]).num_requests == 0
    assert instance.subset([False] * 3).num_requests == 0


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([True, False], ValueError, r"a mask of shape \(2,\) cannot choose from 3"),
        ([0, -1], ValueError, r"ids\[1\] = -1 but must be an integer from 0 to 2"),
        ([3], ValueError, r"ids\[0\] = 3 but must be an integer from 0 to 2"),
        ([0.5], ValueError, r"ids\[0\] = 0.5"),
        (["a"], TypeError, "ids must hold integers"),
        ([[0]], ValueError, "ids must be one-dimensional"),
    ],
)
def test_subset_refuses_what_is_no_id(ids, error, message):
    """Floats were cut off, and -1 was the last request."""
    with pytest.raises(error, match=message):
        Instance([3, 1, 2], [2, 4, 5], 8).subset(ids)


def test_objects_that_are_integers_are_taken():
    """Columns of pandas are arrays of objects, and were refused for that alone."""
    mixture = np.array([3, np.int32(1), np.uint64(2)], dtype=object)
    instance = Instance(mixture, np.array([2, 4, 5], dtype=object), 8)
    assert instance.prefill.tolist() == [3, 1, 2]
    assert instance.prefill.dtype == np.int64
    for wrong in (np.bool_(True), "1", 1.5, np.nan):
        with pytest.raises((TypeError, ValueError), match=r"prefill\[1\] = "):
            Instance(np.array([3, wrong], dtype=object), [2, 4], 8)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_of_any_width_are_compared_exactly(kind):
    """As a float32 the limit is 2**31 itself, as a float16 infinite with a warning."""
    assert Instance(np.array([3, 1], kind), [2, 4], 8).prefill.tolist() == [3, 1]
    large = kind(np.inf if kind is np.float16 else 2**31)
    with pytest.raises(ValueError, match=r"prefill\[0\] = .* to 2147483647"):
        Instance(np.array([large, 1], kind), [2, 4], 8)
    with pytest.raises(ValueError, match="kv_budget = "):
        Instance([3, 1], [2, 4], large)


def test_masked_entries_are_refused():
    """What was masked as missing was read as if it were there."""
    masked = np.ma.masked_array([3, 7], mask=[False, True])
    with pytest.raises(ValueError, match="prefill has masked entries"):
        Instance(masked, [2, 4], 12)
    assert Instance(np.ma.masked_array([3, 7]), [2, 4], 12).prefill.tolist() == [3, 7]
