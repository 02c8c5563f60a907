"""Figures carry the right data, at every size; files are whole and repeat."""

import subprocess
import sys

import numpy as np
import pytest

from sortedf import EngineModel, Instance, Schedule
from sortedf.errors import MissingExtraError, OutputError
from sortedf.plotting import plot_completions, plot_format, plot_schedule, save
from sortedf.plotting.thin import COLUMNS, thin

matplotlib = pytest.importorskip("matplotlib")


def some_schedule(n, *, seed=0, arrivals=False, block_size=1):
    """A schedule to draw; it need not be feasible for that."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 10 * n, n)
    instance = Instance(
        prefill=rng.integers(1, 4000, n),
        decode=rng.integers(1, 300, n),
        arrival=rng.integers(0, start + 1) if arrivals else None,
        engine=EngineModel(16492, block_size),
    )
    return Schedule(instance, start)


def box(path):
    (left, bottom), (right, top) = path.get_extents().get_points()
    return left, right, (bottom + top) / 2, top - bottom


def line_named(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def legend_lines(figure):
    return [text.get_text().split("  ") for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("n", [1, 20, 2000])
def test_every_request_is_a_bar_from_start_to_completion(n):
    schedule = some_schedule(n)
    paths = plot_schedule(schedule).axes[0].collections[0].get_paths()
    spans = zip(schedule.start.tolist(), schedule.completion.tolist(), strict=True)
    drawn = [box(path) for path in paths]
    assert [(left, right) for left, right, _, _ in drawn] == sorted(spans)
    assert [row for _, _, row, _ in drawn] == list(range(n))
    # With 2000 rows in some 600 pixels, bars of one row each would leave a moiré.
    assert drawn[0][3] >= max(0.8, n / 600)


def test_bars_are_coloured_by_prefill_in_their_own_order():
    schedule = some_schedule(50)
    bars = plot_schedule(schedule).axes[0].collections[0]
    order = np.lexsort((schedule.completion, schedule.start))
    assert bars.get_array().tolist() == schedule.instance.prefill[order].tolist()
    assert bars.norm.vmin <= schedule.instance.prefill.min()
    assert bars.norm.vmax >= schedule.instance.prefill.max()


def test_labels_at_20_and_none_at_2000():
    schedule = some_schedule(20)
    texts = [text.get_text() for text in plot_schedule(schedule).axes[0].texts]
    lengths = zip(schedule.instance.prefill, schedule.instance.decode, strict=True)
    assert sorted(texts) == sorted(
        f"{i}: {s:,}+{o}" for i, (s, o) in enumerate(lengths)
    )
    assert not plot_schedule(some_schedule(2000)).axes[0].texts


def test_waiting_is_shown_where_requests_arrive_over_time():
    schedule = some_schedule(20, arrivals=True)
    _, waiting = plot_schedule(schedule).axes[0].collections
    drawn = [tuple(segment[:, 0]) for segment in waiting.get_segments()]
    order = np.lexsort((schedule.completion, schedule.start))
    arrival, start = schedule.instance.arrival[order], schedule.start[order]
    assert drawn == list(zip(arrival.tolist(), start.tolist(), strict=True))
    for crowd in (some_schedule(20), some_schedule(2000, arrivals=True)):
        assert len(plot_schedule(crowd).axes[0].collections) == 1


@pytest.mark.parametrize(
    ("n", "block_size"), [(1, 1), (20, 16), (2000, 1), (20_000, 1)]
)
def test_usage_reaches_the_peak_and_the_budget_is_drawn(n, block_size):
    schedule = some_schedule(n, block_size=block_size)
    axes = plot_schedule(schedule).axes[1]
    assert max(line_named(axes, "KV used").get_ydata()) == schedule.peak_kv
    assert set(line_named(axes, "budget").get_ydata()) == {16492}
    assert [text.get_text() for text in axes.texts] == ["budget 16,492 tokens"]
    assert axes.get_ylim()[1] > max(schedule.peak_kv, 16492)


def test_axes_are_named_with_their_units_and_share_time():
    bars, usage, colours = plot_schedule(some_schedule(20), title="$a$ plan").axes
    assert bars.get_xlim() == usage.get_xlim()
    assert (usage.get_xlabel(), usage.get_ylabel()) == ("step", "KV used (tokens)")
    assert colours.get_ylabel() == "prefill (tokens)"


def test_large_schedules_are_drawn_quickly_and_as_pixels(tmp_path):
    figure = plot_schedule(some_schedule(100_000))
    assert figure.axes[0].collections[0].get_rasterized()
    save(figure, tmp_path / "large.svg")
    assert (tmp_path / "large.svg").stat().st_size < 2_000_000


@pytest.mark.parametrize("n", [1, 20, 2000])
def test_completions_end_at_n_and_their_area_is_the_mean_latency(n):
    schedule = some_schedule(n)
    line = plot_completions({"some": schedule}).axes[0].lines[0]
    step, completed = line.get_data()
    assert (step[0], completed[0]) == (0, 0) or step[0] == schedule.start.min()
    assert (step[-1], completed[-1]) == (schedule.makespan, n)
    below = sum(np.diff(step) * completed[:-1])
    assert schedule.makespan - below / n == pytest.approx(schedule.mean_latency)
    assert line.get_drawstyle() == "steps-post"


def test_legend_is_sorted_by_mean_latency():
    slow, fast = some_schedule(30), some_schedule(30)
    slow = Schedule(slow.instance, slow.start + 1000)
    figure = plot_completions({"slow": slow, "$_fast$": fast})
    rows = legend_lines(figure)
    assert [row[0].strip() for row in rows] == ["$_fast$", "slow"]
    means = [f"{fast.mean_latency:,.1f}", f"{slow.mean_latency:,.1f}"]
    assert [row[-1].strip() for row in rows] == means


def test_15_methods_can_be_told_apart():
    methods = {str(seed): some_schedule(50, seed=seed) for seed in range(15)}
    lines = plot_completions(methods).axes[0].lines[:15]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 15


def test_the_bound_is_a_point_in_time_only_in_a_backlog():
    backlog = plot_completions({"a": some_schedule(9)}, lower_bound_mean=1234.5)
    assert legend_lines(backlog)[0] == ["lower bound", "1,234.5"]
    assert [1234.5, 1234.5] in [
        list(line.get_xdata()) for line in backlog.axes[0].lines
    ]
    online = some_schedule(9, arrivals=True)
    figure = plot_completions({"a": online}, lower_bound_mean=1234.5)
    assert legend_lines(figure)[0] == ["lower bound", "1,234.5"]
    assert [len(line.get_xdata()) for line in figure.axes[0].lines[1:]] == [0]


def test_thinning_keeps_ends_and_extremes_of_every_column():
    rng = np.random.default_rng(1)
    x, y = np.sort(rng.integers(0, 10**6, 50_000)), rng.integers(0, 10**6, 50_000)
    thin_x, thin_y = thin(x, y)
    assert len(thin_x) <= 4 * COLUMNS
    column = (x - x[0]) * COLUMNS // (x[-1] - x[0] + 1)
    kept = (thin_x - x[0]) * COLUMNS // (x[-1] - x[0] + 1)
    for c in range(0, COLUMNS, 97):
        before, after = y[column == c], thin_y[kept == c]
        assert (before[0], before[-1]) == (after[0], after[-1])
        assert (before.min(), before.max()) == (after.min(), after.max())


def test_short_curves_are_not_thinned():
    x = np.arange(4 * COLUMNS)
    assert thin(x, x)[0] is x


def test_empty_input_is_refused():
    empty = Schedule(Instance([], [], kv_budget=1), [])
    with pytest.raises(ValueError, match="the schedule has no requests"):
        plot_schedule(empty)
    with pytest.raises(ValueError, match="there are no schedules"):
        plot_completions({})
    with pytest.raises(ValueError, match="schedule 'nil' has no requests"):
        plot_completions({"one": some_schedule(1), "nil": empty})


def test_saving_twice_gives_the_same_bytes(tmp_path):
    schedule = some_schedule(40, arrivals=True)
    figure = plot_schedule(schedule, title="plan")
    again = plot_schedule(schedule, title="plan")
    for suffix in ("png", "svg", "pdf"):
        names = [tmp_path / f"{k}.{suffix}" for k in range(3)]
        for each, name in zip([figure, figure, again], names, strict=True):
            save(each, name)
        assert len({name.read_bytes() for name in names}) == 1
    assert len(list(tmp_path.iterdir())) == 9


def test_files_tell_no_date_and_no_version(tmp_path):
    figure = plot_completions({"a": some_schedule(5)})
    for suffix in ("png", "svg", "pdf"):
        save(figure, tmp_path / f"a.{suffix}")
        content = (tmp_path / f"a.{suffix}").read_bytes()
        assert matplotlib.__version__.encode() not in content
        assert b"Date" not in content
        assert b"Software" not in content


def test_png_has_the_promised_size(tmp_path):
    save(plot_completions({"a": some_schedule(5)}), tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[16:24]
    sides = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert sides == (1500, 900)


def test_other_suffixes_are_refused_by_name(tmp_path):
    figure = plot_schedule(some_schedule(1))
    for name in ("plan.gif", "plan", "plan.png.bak"):
        with pytest.raises(ValueError, match=r"must end in \.png, \.svg or \.pdf"):
            save(figure, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_suffixes_in_capitals_are_understood():
    assert plot_format("plan.PDF") == "pdf"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "plan.png"
    path.write_bytes(b"old")
    figure = plot_schedule(some_schedule(1))

    def fail(target, **options):
        with open(target, "wb") as file:
            file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OutputError, match="disk full"):
        save(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("plot", [plot_schedule, lambda s: plot_completions({"a": s})])
def test_without_matplotlib_the_error_names_the_extra(monkeypatch, plot):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sortedf\[plot\]'"):
        plot(some_schedule(3))


def test_importing_loads_no_matplotlib_and_drawing_no_pyplot():
    code = (
        "import sys; from sortedf import *; from sortedf.plotting import *;"
        "assert 'matplotlib' not in sys.modules;"
        "plot_schedule(Schedule(Instance([1], [1], kv_budget=2), [0]));"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
