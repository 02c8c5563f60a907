"""The text-book program: what it says, and what is written is what was said."""

from __future__ import annotations

import pulp
import pytest
from highspy import HighsModelStatus
from hypothesis import given

from lp import textbook
from lp.highs import SolverError, silent_highs
from lp.textbook import textbook_model, textbook_optimum, write_model
from sortedf import EngineModel, Instance
from sortedf.errors import OutputError, TooLargeError
from tests import naive
from tests.strategies import engines, examples, instances

INSTANCE = Instance(
    [5, 6, 1], [3, 2, 1], None, [0, 0, 1], EngineModel(10, 2, 2, 8)
)  # blocks of 2, two sequences, eight tokens a step


def test_the_program_reads_like_the_text_book():
    """Each row by its name, with arrivals, blocks and both caps."""
    model = textbook_model(INSTANCE, 5, integer=True)

    def row(name: str) -> tuple[dict[str, float], float]:
        found = model.get_constraint_by_name(name)
        return {x.name: entry for x, entry in found.items()}, found.getUb()

    assert row("serve_0") == ({"x_0_0": 1, "x_0_1": 1, "x_0_2": 1}, 1)
    assert row("serve_2") == ({"x_2_1": 1, "x_2_2": 1, "x_2_3": 1, "x_2_4": 1}, 1)
    # Request 0 holds 6, 8 and 8 tokens, request 1 holds 8 and 8, request 2 holds 2.
    memory = {"x_0_0": 8, "x_0_1": 6, "x_1_0": 8, "x_1_1": 8, "x_2_1": 2}
    assert row("memory_2") == (memory, 10)
    assert row("seqs_2") == (dict.fromkeys(memory, 1), 2)
    tokens = {"x_0_0": 1, "x_0_1": 5, "x_1_0": 1, "x_1_1": 6, "x_2_1": 1}
    assert row("tokens_2") == (tokens, 8)
    assert model.get_constraint_by_name("memory_5") is not None
    assert model.get_constraint_by_name("memory_6") is None
    assert all(variable.cat == pulp.LpInteger for variable in model.variables())
    cost = {x.name: entry for x, entry in model.objective.items()}
    assert (cost["x_0_0"], cost["x_0_2"], cost["x_1_3"]) == (3, 5, 5)
    assert (cost["x_2_1"], cost["x_2_4"]) == (1, 4)


@examples(40)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_its_integer_optimum_is_that_of_brute_force(instance):
    """The default horizon is long enough, and the relaxation is not above."""
    best = naive.best_tel(instance)
    whole = textbook_optimum(textbook_model(instance, integer=True))
    assert round(whole) == best
    assert textbook_optimum(textbook_model(instance)) <= best + 1e-6


def optimum_of_file(path: object) -> float:
    highs = silent_highs()
    highs.readModel(str(path))
    highs.run()
    assert highs.getModelStatus() == HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("integer", [True, False])
def test_highs_reads_what_was_written(tmp_path, suffix, integer):
    """The same optimum, and the file is all that is left."""
    path = tmp_path / f"model{suffix}"
    write_model(INSTANCE, path, integer=integer)
    expected = textbook_optimum(textbook_model(INSTANCE, integer=integer))
    assert optimum_of_file(path) == pytest.approx(expected, rel=1e-6)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["model.txt", "model", "model.lp.gz"])
def test_other_formats_are_refused(tmp_path, name):
    """The suffix is the format."""
    with pytest.raises(ValueError, match=rf"{name} must end in \.lp or \.mps"):
        write_model(INSTANCE, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    """A failure half way leaves the old file, and nothing beside it."""
    path = tmp_path / "model.lp"
    path.write_text("old")

    def fail(self: object, name: str) -> None:
        with open(name, "w") as file:
            file.write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pulp.LpProblem, "writeLP", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        write_model(INSTANCE, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path):
    """The message says what is missing."""
    with pytest.raises(OutputError, match="does not exist"):
        write_model(INSTANCE, tmp_path / "nowhere" / "model.mps")


def test_a_short_horizon_is_infeasible_and_says_so():
    """Request 0 alone takes three steps."""
    for horizon in (0, 2, 4):
        with pytest.raises(SolverError, match="the program is infeasible"):
            textbook_optimum(textbook_model(INSTANCE, horizon))


def test_large_instances_are_refused(monkeypatch):
    """PuLP would take hours."""
    monkeypatch.setattr(textbook, "MAX_NONZEROS", 40)
    with pytest.raises(TooLargeError, match=r"has \d+ entries, more than 40; .*dual"):
        textbook_model(INSTANCE)


def test_nothing_to_state():
    """No requests: optimum 0."""
    assert textbook_optimum(textbook_model(Instance([], [], 5))) == 0
