"""`sortedf export`: what is written is solved to the optimum by another reader."""

from __future__ import annotations

import json

import pulp
import pytest

from lp.highs import silent_highs
from tests.refusals import refused


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    text = "prefill_tokens,decode_tokens\n5,3\n6,2\n1,1\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("arguments", "optimum"), [((), 8.0), (("--relaxed", "--horizon", 6), 7.412)]
)
def test_the_model_has_the_optimum(cli, trace, tmp_path, arguments, optimum):
    """Read back by PuLP and solved by HiGHS."""
    path = tmp_path / "model.mps"
    code, out, _ = cli(
        "export", trace, "--kv-budget", 10, "-o", path, "--json", *arguments
    )
    assert code == 0
    content = json.loads(out)
    assert (content["n"], content["path"], content["dropped"]) == (3, str(path), [])
    _, model = pulp.LpProblem.fromMPS(str(path))
    silent_highs()
    model.solve(pulp.HiGHS(msg=False))
    assert pulp.value(model.objective) == pytest.approx(optimum, abs=1e-3)


def test_a_model_for_people(cli, trace, tmp_path):
    """The other format, and a line with the size."""
    path = tmp_path / "model.lp"
    code, out, _ = cli("export", trace, "--kv-budget", 10, "-o", path)
    assert (code, "entries" in out) == (0, True)
    assert "Minimize" in path.read_text(encoding="utf-8")


def test_mistakes_are_one_line_and_nothing_is_written(cli, trace, tmp_path):
    """Another suffix, a trace that is too large, the trace itself as the output."""
    arguments = ("export", trace, "--kv-budget", 10, "-o")
    assert "must end in .lp or .mps" in refused(cli(*arguments, tmp_path / "m.txt"))
    large = tmp_path / "large.csv"
    rows = "900,900\n" * 60
    large.write_text(f"prefill_tokens,decode_tokens\n{rows}", encoding="utf-8")
    path = tmp_path / "model.mps"
    result = cli("export", large, "--kv-budget", 2000, "-o", path)
    assert "entries, more than 2,000,000" in refused(result)
    assert not path.exists()
    assert "trace.csv" in refused(cli(*arguments, trace))
