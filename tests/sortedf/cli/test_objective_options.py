"""What `sortedf solve` minimises, and caps on latency."""

from __future__ import annotations

import json

import pytest

from tests.refusals import refused


def test_solve_minimises_the_makespan(cli, crowd):
    """Shorter than what TEL gives, with a bound of its own."""
    budget = ("--kv-budget", 400, "--rounds", 2, "--json")
    tel = json.loads(cli("solve", crowd, *budget)[1])
    code, out, _ = cli("solve", crowd, *budget, "--objective", "makespan")
    found = json.loads(out)
    assert code == 0
    assert found["objective"] == "makespan"
    assert found["value"] == found["makespan"] < tel["makespan"]
    assert found["lower_bound"] <= found["makespan"]
    assert found["gap"] == pytest.approx(found["value"] / found["lower_bound"] - 1)
    _, text, _ = cli("solve", crowd, *budget[:-1], "--objective", "makespan")
    assert "longest latency" in text


def test_solve_weighs_requests(cli, crowd, tmp_path):
    """The heavy ones come first; every wrong file is refused with its line."""
    path = tmp_path / "weights.txt"
    weights = [50 if k % 4 == 0 else 1 for k in range(60)]
    path.write_text("".join(f"{w}\n" for w in weights), encoding="utf-8")
    asked = ("--kv-budget", 400, "--objective", "weighted-tel", "--weights", path)
    schedule = tmp_path / "weighted.json"
    code, out, _ = cli("solve", crowd, *asked, "--json", "-o", schedule)
    found = json.loads(out)
    start = json.loads(schedule.read_text(encoding="utf-8"))["start"]
    ends = [p + 1 + 53 * k % 70 for k, p in enumerate(start)]
    assert code == 0
    assert found["value"] == sum(w * c for w, c in zip(weights, ends, strict=True))
    assert found["lower_bound"] <= found["value"]
    assert found["bound_method"] == "volume"
    assert "weighted-tel" in cli("solve", crowd, *asked)[1]
    path.write_text("1\n" * 59, encoding="utf-8")
    assert "has 59 lines but" in refused(cli("solve", crowd, *asked))
    path.write_text("1\n" * 59 + "-2\n", encoding="utf-8")
    assert "line 60: weight '-2' must be" in refused(cli("solve", crowd, *asked))
    path.unlink()
    assert "cannot be read" in refused(cli("solve", crowd, *asked))


def test_a_weight_of_thousands_of_digits_is_named_by_its_line(cli, trace, tmp_path):
    """Python refuses to read such a number, with advice on its own settings."""
    path = tmp_path / "weights.txt"
    path.write_text(f"1\n{'9' * 5000}\n1\n", encoding="utf-8")
    asked = ("--kv-budget", 10, "--objective", "weighted-tel", "--weights", path)
    message = refused(cli("solve", trace, *asked))
    assert f"{path}: line 2: weight '9999" in message
    assert len(message) < 400


def test_solve_keeps_a_cap_or_says_so(cli, crowd):
    """Exit code 1 where no schedule was found that keeps it; the result is shown."""
    budget = ("--kv-budget", 400, "--rounds", 2, "--json")
    free = json.loads(cli("solve", crowd, *budget)[1])
    cap = int(0.97 * free["max_latency"])
    for option in "--max-latency", "--p99-latency":
        code, out, _ = cli("solve", crowd, *budget, option, cap)
        assert code == 0
        found = json.loads(out)
        assert found["over_cap"] == 0
        assert found["max_latency"] <= cap
        assert found["lower_bound"] <= found["total_latency"]
    code, out, err = cli("solve", crowd, *budget, "--max-latency", 71)
    assert code == 1
    assert json.loads(out)["over_cap"] > 0
    assert "exceed the cap on latency" in err
