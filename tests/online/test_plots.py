"""Every picture can be drawn, is the same each time, and says what it lacks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from online.named import parse_many
from online.plots import plot_cdfs, plot_gamma, plot_load, plot_slo, plot_timeline
from online.sweep import Setting, grid, sweep
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.plotting import save

pytest.importorskip("matplotlib")

RULES = EngineModel.vllm(8192)
SETTING = Setting(generate("mix", 80, seed=1), RULES, keep_logs=True)


@pytest.fixture(scope="module")
def outcomes():
    policies = parse_many("fcfs,svf,uniboost:gamma=0.01,uniboost:gamma=1.0")
    return sweep(SETTING, grid(policies, loads=(0.5, 2.0), seeds=range(2)))


@pytest.mark.parametrize("plot", [plot_cdfs, plot_gamma, plot_load, plot_slo])
def test_pictures_of_many_runs(outcomes, plot, tmp_path):
    """A legend with every policy, and the same bytes for the same runs."""
    contents = set()
    for k in range(2):
        figure = plot(outcomes, unit="steps", title="a $ title")
        save(figure, tmp_path / f"{k}.png")
        contents.add((tmp_path / f"{k}.png").read_bytes())
    assert len(contents) == 1
    names = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"fcfs", "svf"} <= names
    assert all(axes.lines for axes in figure.axes)


def test_timeline(outcomes, tmp_path):
    """Running, waiting, KV and where it was lost."""
    (log,) = (
        o.log for o in outcomes if o.run == grid(parse_many("fcfs"), loads=(2.0,))[0]
    )
    figure = plot_timeline(log, RULES, title="fcfs")
    save(figure, tmp_path / "out.svg")
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "running",
        "waiting",
        "KV held (tokens)",
    ]
    assert log.steps.preemptions.sum()
    (mark,) = figure.axes[2].get_legend().get_texts()
    assert mark.get_text().startswith("KV lost in")


def test_what_cannot_be_drawn(outcomes):
    """Each says what it needs."""
    for plot in (plot_cdfs, plot_gamma, plot_load, plot_slo):
        with pytest.raises(ValueError, match=r"nothing to plot|gamma needs"):
            plot([])
    bare = sweep(Setting(SETTING.trace, RULES), grid(parse_many("svf"), rate=0.1))
    for plot in (plot_cdfs, plot_slo):
        with pytest.raises(ValueError, match="keep_logs=True"):
            plot(bare)
    with pytest.raises(ValueError, match=r"uniboost:gamma=0\.1"):
        plot_gamma(bare)
    assert plot_load(bare).axes[0].get_xlabel() == "requests per second"
    backlog = partial(grid, parse_many("svf"))
    with pytest.raises(ValueError, match="a load or a rate"):
        plot_load([replace(bare[0], run=backlog()[0])])
