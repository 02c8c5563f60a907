"""The sparse program: entry by entry the convention, and the text book's optimum."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp.formulation import Formulation, formulate, num_bands, num_nonzeros
from lp.highs import Model
from lp.horizon import good_schedule, latest_starts
from lp.milp import milp
from lp.relaxation import solve_relaxation
from lp.textbook import textbook_model, textbook_optimum
from sortedf import EngineModel, Instance
from sortedf.errors import TooLargeError
from sortedf.options import Options
from tests.strategies import engines, examples, instances


def dense(formulation: Formulation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the matrix with its starts, as (matrix, request, start)."""
    request, start = formulation.all_starts()
    columns = formulation.columns(request, start)
    matrix = np.zeros((len(formulation.row_upper), len(columns)))
    for k in range(len(columns)):
        part = slice(columns.begin[k], columns.begin[k + 1])
        assert len(set(columns.row[part])) == columns.begin[k + 1] - columns.begin[k]
        matrix[columns.row[part], k] = columns.value[part]
    return matrix, request, start


def entry(instance: Instance, band: str, i: int, j: int) -> int:
    """What request `i` takes of a resource in its `j`-th step."""
    if not 1 <= j <= instance.decode[i]:
        return 0
    if band == "memory":
        return instance.engine.round_up(int(instance.prefill[i]) + j)
    return int(instance.prefill[i]) if band == "tokens" and j == 1 else 1


@examples(60)
@given(instances(max_requests=5, max_length=6, engine=engines()), st.data())
def test_every_entry_is_the_convention(instance, data):
    """Rows are requests, then steps with their budget, then steps with their caps."""
    wait = st.integers(-1, 4)
    n = instance.num_requests
    latest = instance.arrival + data.draw(st.lists(wait, min_size=n, max_size=n))
    caps = data.draw(st.booleans())
    formulation = formulate(instance, latest, caps=caps)
    matrix, request, start = dense(formulation)
    expected = [
        (i, t)
        for i in range(n)
        for t in range(int(instance.arrival[i]), int(latest[i]) + 1)
    ]
    assert list(zip(request.tolist(), start.tolist(), strict=True)) == expected
    steps = {t + j for i, t in expected for j in range(1, int(instance.decode[i]) + 1)}
    assert formulation.step.tolist() == sorted(steps)
    engine = instance.engine
    limits = {"memory": instance.usable_kv}
    if caps and engine.max_num_seqs is not None:
        limits["seqs"] = engine.max_num_seqs
    if caps and engine.max_batched_tokens is not None:
        limits["tokens"] = engine.max_batched_tokens
    assert len(limits) == num_bands(instance, caps=caps)
    rows = [[float(i == k) for k, _ in expected] for i in range(n)]
    for band in limits:
        for u in sorted(steps):
            rows.append([entry(instance, band, i, u - t) for i, t in expected])
    assert matrix.tolist() == rows
    right = [limit for limit in limits.values() for _ in steps]
    assert formulation.row_upper.tolist() == [1.0] * n + right
    assert formulation.row_lower.tolist() == [1.0] * n + [-np.inf] * len(right)
    cost = formulation.columns(request, start).cost
    latency = start + instance.decode[request] - instance.arrival[request]
    assert cost.tolist() == latency.tolist()
    assert num_nonzeros(instance, latest, caps=caps) == np.count_nonzero(matrix)


@examples(40)
@given(instances(max_requests=5, max_length=6, engine=engines()), st.booleans())
def test_the_optimum_is_that_of_the_text_book(instance, integer):
    """PuLP's loops and the arrays say the same, with arrivals, blocks and caps."""
    latest = latest_starts(instance, good_schedule(instance).tel)
    formulation = formulate(instance, latest)
    model = Model(
        formulation.columns(*formulation.all_starts()),
        formulation.row_lower,
        formulation.row_upper,
        integer=integer,
    )
    expected = textbook_optimum(textbook_model(instance, integer=integer))
    assert model.solve().objective == pytest.approx(expected, rel=1e-7)


@given(instances(max_requests=5, max_length=6, engine=engines()), st.data())
def test_some_columns_are_those_of_all(instance, data):
    """A subset of the starts gives the same columns."""
    latest = instance.arrival + 5
    formulation = formulate(instance, latest)
    request, start = formulation.all_starts()
    chosen = data.draw(
        st.lists(st.booleans(), min_size=len(start), max_size=len(start))
    )
    picked = np.flatnonzero(chosen)
    every = formulation.columns(request, start)
    some = formulation.columns(request[picked], start[picked])
    assert some.cost.tolist() == every.cost[picked].tolist()
    for k, at in enumerate(picked):
        mine = slice(some.begin[k], some.begin[k + 1])
        other = slice(every.begin[at], every.begin[at + 1])
        assert some.row[mine].tolist() == every.row[other].tolist()
        assert some.value[mine].tolist() == every.value[other].tolist()


def test_steps_in_which_nothing_can_run_have_no_rows():
    """Between arrivals far apart there is nothing to store."""
    instance = Instance([1, 2], [2, 1], 10, [0, 10**12])
    formulation = formulate(instance, instance.arrival + 1)
    last = 10**12 + 1
    assert formulation.step.tolist() == [1, 2, 3, last, last + 1]
    assert formulation.first.tolist() == [0, 3]
    matrix, _, _ = dense(formulation)
    assert matrix[2:].tolist() == [
        [2, 0, 0, 0],
        [3, 2, 0, 0],
        [0, 3, 0, 0],
        [0, 0, 3, 0],
        [0, 0, 0, 3],
    ]


def test_prices_are_by_step_and_never_negative():
    """The dual of a row <= is minus its price; steps without a row cost nothing."""
    instance = Instance([1, 2], [1, 1], 10, [1, 5])
    formulation = formulate(instance, instance.arrival)
    assert formulation.step.tolist() == [2, 6]
    prices = formulation.prices(np.array([7.0, 7.0, -0.5, 1e-12]))
    assert prices.tolist() == [0, 0.5, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "engine", [EngineModel(2**24), EngineModel(2**24, max_num_seqs=3)]
)
def test_too_large_is_refused_before_anything_is_allocated(engine):
    """Terabytes are refused with kilobytes, naming what does without."""
    lengths = np.full(100, 2**20)
    instance = Instance(lengths, lengths, engine=engine)
    tracemalloc.start()
    for solver in ("columns", "simplex"):
        with pytest.raises(TooLargeError, match=r'entries, more.*method="dual"'):
            solve_relaxation(instance, solver=solver)
    with pytest.raises(TooLargeError, match=r'entries, more.*method="dual"'):
        textbook_model(instance)
    with pytest.raises(TooLargeError, match=r'entries, more.*method="dual"'):
        milp(instance, Options())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**20


def test_nothing_to_formulate():
    """No requests, no rows, no columns."""
    formulation = formulate(Instance([], [], 5), np.empty(0, dtype=np.int64))
    request, start = formulation.all_starts()
    assert len(formulation.columns(request, start)) == 0
    assert len(formulation.row_upper) == 0
    assert len(formulation.prices(np.empty(0))) == 0
