"""Headline numbers of the papers, and the functions that find ours in the rows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.common.registry import Row

YES, NO, PARTLY = "yes", "no", "partly"

DEVICE_STEP_US = 25_000
"""Microseconds that the device of `device_idle` needs for a step."""


@dataclass(frozen=True, slots=True)
class Found:
    """Our figure as text, and whether it agrees with the paper's."""

    text: str
    same: str


@dataclass(frozen=True, slots=True)
class Headline:
    """One number of a paper.

    Attributes
    ----------
    paper, what, theirs : str
    benchmark : str
        Whose rows hold ours.
    look : callable
        Finds it in them; None if they do not have it.
    why : str
        Why the two differ, or what explains both.
    """

    paper: str
    what: str
    theirs: str
    benchmark: str
    look: Callable[[list[Row]], Found | None]
    why: str


def only(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Rows that have all these values."""
    return [
        row
        for row in rows
        if all(row.get(key) == value for key, value in wanted.items())
    ]


def paired(
    over: list[Row], under: list[Row], figure: str, key: str = "seed"
) -> float | None:
    """Median over the seeds of the ratio of a figure; None if there are none."""
    below = {row[key]: value_of(row, figure) for row in under}
    ratios = []
    for row in over:
        above, base = value_of(row, figure), below.get(row[key])
        if above is not None and base:
            ratios.append(above / base)
    return median(ratios) if ratios else None


def value_of(row: Row, figure: str) -> float | None:
    """Look a figure up, None if there was none; a dot leads into a part of the row."""
    value: Any = row
    for part in figure.split("."):
        value = None if value is None else value.get(part)
    return None if value is None else float(value)


def _same(met: Iterable[bool]) -> str:
    """Return yes if all of it was reproduced, no if none was."""
    all_met = list(met)
    return YES if all(all_met) else PARTLY if any(all_met) else NO


def _span(values: Iterable[float], form: str = ".2f") -> str:
    listed = sorted(values)
    low, high = f"{listed[0]:{form}}", f"{listed[-1]:{form}}"
    return low if low == high else f"{low} to {high}"


# Backlogs.


def _latency_ratio(
    rival: str, theirs: float, within: float
) -> Callable[[list[Row]], Found | None]:
    """Mean latency of a rival over Sorted-F's with the papers' placement, on 80/20."""

    def look(rows: list[Row]) -> Found | None:
        mine = only(rows, mix="80/20")
        rivals = only(mine, method=rival, backfill=0)
        ratio = paired(rivals, only(mine, method="sorted-f", backfill=0), "tel")
        best = paired(rivals, only(mine, method="auto"), "tel")
        if ratio is None or best is None:
            return None
        close = abs(ratio / theirs - 1) <= within
        return Found(f"{ratio:.2f}; `auto` {best:.2f}", YES if close else PARTLY)

    return look


def _by_mix(rows: list[Row]) -> Found | None:
    """How much Sorted-F gains where lengths are alike and where they are not."""
    gains = {}
    for mix in dict.fromkeys(row["mix"] for row in rows):
        mine = only(rows, mix=mix, backfill=0)
        gain = paired(only(mine, method="fcfs"), only(mine, method="sorted-f"), "tel")
        if gain is not None:
            gains[mix] = gain
    if "80/20" not in gains or len(gains) < 2:
        return None
    least = min(gains, key=gains.__getitem__)
    text = f"80/20: {gains['80/20']:.2f}; least, {least}: {gains[least]:.2f}"
    return Found(text, YES if gains[least] < gains["80/20"] else NO)


def _gap_to_lp(rows: list[Row]) -> Found | None:
    """Best schedule over the linear relaxation, where that is solved."""
    solved = [
        row["auto_tel"] / row["lp_bound"]
        for row in only(rows, kind="lp", arrivals=False)
        if row.get("lp_status") == "optimal" and row["lp_bound"]
    ]
    if not solved:
        return None
    text = f"`auto`: median {median(solved):.3f}, worst {max(solved):.3f}"
    return Found(text, YES if max(solved) <= 1.09 else PARTLY)


def _certified(rows: list[Row]) -> Found | None:
    """Certified ratios on traces, by size and budget."""
    own = only(rows, source="traces")
    parts = []
    for n, budget in dict.fromkeys((row["n"], row["kv_budget"]) for row in own):
        here = only(own, n=n, kv_budget=budget)
        ratio = median(row["auto"] / row["lower_bound"] for row in here)
        parts.append(f"n = {n:,}, M = {budget:,}: {ratio:.3f}")
    return Found("; ".join(parts), YES) if parts else None


def _exact_groups(rows: list[Row]) -> Found | None:
    """Time of a whole exact order at the largest size."""
    orders = only(rows, part="orders")
    dp = only(rows, part="against dp")
    if not orders or not dp:
        return None
    n = max(row["n"] for row in orders)
    spent = median(sum(row["all_s"]) for row in only(orders, n=n))
    slow = median(row["exact-dp_s"] for row in dp)
    fast = median(row["exact_s"] for row in dp)
    text = (
        f"n = {n:,}: whole order {spent:.1f} s; n = 100: {1000 * fast:.1f} ms a group, "
        f"dynamic program {1000 * slow:.0f} ms"
    )
    return Found(text, YES)


def _svf_over_sorted_f(rows: list[Row]) -> Found | None:
    ratios = []
    for mix in dict.fromkeys(row["mix"] for row in rows):
        mine = only(rows, mix=mix, backfill=0)
        ratio = paired(only(mine, method="svf"), only(mine, method="sorted-f"), "tel")
        if ratio is not None:
            ratios.append(ratio)
    if not ratios:
        return None
    spread = _span(ratios, ".3f")
    return Found(f"proved; TEL {spread} of Sorted-F's over {len(ratios)} mixes", YES)


def _mc_sf_gap(rows: list[Row]) -> Found | None:
    ratios = {
        mix: median(row["ratio"] for row in only(rows, mix=mix, method="mc-sf"))
        for mix in dict.fromkeys(row["mix"] for row in rows)
        if only(rows, mix=mix, method="mc-sf")
    }
    if not ratios:
        return None
    text = f"{_span(ratios.values())} of the bound, by mix"
    return Found(text, _same(ratio <= 1.05 for ratio in ratios.values()))


# Streams.


def _online(rows: list[Row]) -> Found | None:
    """Gain of the receding horizon at the lowest and at the highest load."""
    mine = only(rows, workload="80/20")
    loads = sorted({row["load"] for row in mine})
    if len(loads) < 2:
        return None
    gains = []
    for load in (loads[0], loads[-1]):
        here = only(mine, load=load)
        ours = only(here, policy="sorted-f-online")
        gain = [
            paired(only(here, policy=rival), ours, "mean_latency")
            for rival in ("fcfs", "mc-sf")
        ]
        if None in gain:
            return None
        gains.append([value for value in gain if value is not None])
    low, high = gains
    text = (
        f"load {loads[0]:g}: {low[0]:.2f} against FCFS, {low[1]:.2f} against MC-SF; "
        f"load {loads[-1]:g}: {high[0]:.2f} and {high[1]:.2f}"
    )
    met = (high[0] > 1.1, high[1] > 1.1, low[0] < high[0])
    return Found(text, _same(met))


def _amin(rows: list[Row]) -> Found | None:
    """Return the gain that remains if almost nothing is known of the lengths."""
    mine = only(rows, workload="80/20", variant="restart")
    widths = sorted({row["width"] for row in mine})
    if len(widths) < 2:
        return None
    ratios = {}
    for width in widths:
        at = only(mine, width=width)
        ratios[width] = median(r["mean_latency"] / r["fcfs_mean_latency"] for r in at)
    middle = widths[len(widths) // 2]
    text = "mean latency over FCFS's: " + ", ".join(
        f"{ratios[width]:.2f} at width {width:g}"
        for width in (widths[0], middle, widths[-1])
    )
    near = ratios[middle] <= 1.1 * ratios[widths[0]]
    return Found(text, _same((near, ratios[widths[-1]] < 1)))


# PARS.


def _tau_best(rows: list[Row]) -> Found | None:
    taus = _taus(rows, "pairwise")
    if not taus:
        return None
    cell = max(taus, key=taus.__getitem__)
    tops = _taus(rows, "ceiling")
    top = f"; another model's lengths reach {tops[cell]:.2f}" if cell in tops else ""
    text = f"{taus[cell]:.2f} ({cell[0]}, {cell[1]}){top}"
    return Found(text, YES if taus[cell] >= 0.9 else NO)


def _taus(rows: list[Row], method: str) -> dict[tuple[str, str], float]:
    """Median tau_b by data set and model."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in only(rows, method=method):
        if row.get("tau_b") is not None:
            found.setdefault((row["data"], row["model"]), []).append(row["tau_b"])
    return {cell: median(taus) for cell, taus in found.items()}


def _pairwise_first(rows: list[Row]) -> Found | None:
    pair, point, listed = (
        _taus(rows, name) for name in ("pairwise", "pointwise", "listwise")
    )
    cells = [cell for cell in pair if cell in point and cell in listed]
    if not cells:
        return None
    above_point = sum(pair[cell] > point[cell] for cell in cells)
    above_list = sum(pair[cell] > listed[cell] for cell in cells)
    text = (
        f"above pointwise in {above_point} and above listwise in {above_list} of "
        f"{len(cells)} cells"
    )
    full = len(cells)
    met = (above_point == full, above_list == full)
    met_somewhere = above_point or above_list
    return Found(text, YES if all(met) else PARTLY if met_somewhere else NO)


def _across(rows: list[Row]) -> Found | None:
    """Compare rankers of another model with pointwise ones of this model."""
    point = _taus(rows, "pointwise")
    best: dict[tuple[str, str], list[float]] = {}
    for row in only(rows, method="pairwise"):
        for model, tau in (row.get("across") or {}).items():
            cell = (row["data"], model)
            if cell in point and model != row["model"]:
                best.setdefault(cell, []).append(tau)
    if not best:
        return None
    wins = sum(median(taus) > point[cell] for cell, taus in best.items())
    met = (wins == len(best),)
    text = f"in {wins} of {len(best)} cells"
    return Found(text, YES if all(met) else PARTLY if wins else NO)


def _burst_gain(
    figure: str, models: tuple[str, ...], theirs: float
) -> Callable[[list[Row]], Found | None]:
    """FCFS over a rank, all at once: by a noisy rank of tau_b 0.6, and by true lengths.

    A trained ranker's own figure is added where it was measured.
    """

    def look(rows: list[Row]) -> Found | None:
        parts, best = [], 0.0
        for model in models:
            burst = only(rows, workload=model, load=None)
            noise = only(burst, part="noise")
            fcfs = only(noise, order="fcfs")
            for label, target in (("tau_b 0.6", 0.6), ("true lengths", 1.0)):
                ranked = only(noise, order="rank", target=target, limit_s=None)
                gain = paired(fcfs, ranked, figure)
                if gain is not None:
                    parts.append(f"{model}, {label}: {gain:.1f}")
                    best = max(best, gain)
            trained = only(burst, part="trained")
            ranked = only(trained, order="pairwise", limit_s=None)
            gain = paired(only(trained, order="fcfs"), ranked, figure)
            if gain is not None:
                parts.append(f"{model}, trained: {gain:.1f}")
                best = max(best, gain)
        if not parts:
            return None
        return Found("; ".join(parts), YES if best >= theirs else PARTLY)

    return look


def _overhead(rows: list[Row]) -> Found | None:
    """How much longer a step gets, with and without async scheduling."""
    longer = {
        run_async: [
            (row["idle_mean_us"] - plain["idle_mean_us"])
            / (DEVICE_STEP_US + plain["idle_mean_us"])
            for plain in rows
            for row in rows
            if row["async"] == run_async == plain["async"]
            and plain["scheduler"] == "vLLM's own" != row["scheduler"]
            and all(row[key] == plain[key] for key in ("load", "waiting", "repeat"))
        ]
        for run_async in (True, False)
    }
    if not all(longer.values()):
        return None
    text = (
        "a step, 25 ms and what vLLM's own scheduler adds, gets longer by "
        f"{_span(longer[True], '.2%')} with async scheduling, by "
        f"{_span(longer[False], '.2%')} without"
    )
    met = [max(shares) <= 0.001 for shares in longer.values()]
    return Found(text, YES if all(met) else PARTLY if any(met) else NO)


# UniBoost.


def _tails(
    rival: str, figure: str, met: Callable[[float], bool], *, inverse: bool = False
) -> Callable[[list[Row]], Found | None]:
    """Ratio of UniBoost's figure to a rival's, over workloads and loads."""

    def look(rows: list[Row]) -> Found | None:
        ratios = _over_cases(rows, "uniboost", rival, figure)
        if inverse:
            ratios = [1 / ratio for ratio in ratios]
        if not ratios:
            return None
        good = sum(map(met, ratios))
        text = (
            f"median {median(ratios):.2f}, {_span(ratios)}; so in {good} of "
            f"{len(ratios)} cases"
        )
        full = good == len(ratios)
        return Found(text, YES if full else PARTLY if good else NO)

    return look


def _over_cases(rows: list[Row], one: str, other: str, figure: str) -> list[float]:
    policies = only(rows, part="policies")
    cases = dict.fromkeys((row["workload"], row["load"]) for row in policies)
    ratios = []
    for workload, load in cases:
        here = only(policies, workload=workload, load=load)
        ratio = paired(only(here, policy=one), only(here, policy=other), figure)
        if ratio is not None:
            ratios.append(ratio)
    return ratios


def _ablation(ablated: str) -> Callable[[list[Row]], Found | None]:
    """P99 of TTLT without a component over that with it."""

    def look(rows: list[Row]) -> Found | None:
        ratios = _over_cases(rows, ablated, "uniboost", "ttlt.p99")
        if not ratios:
            return None
        worse = sum(ratio > 1.02 for ratio in ratios)
        text = (
            f"median {median(ratios):.2f}, {_span(ratios)}; worse in {worse} of "
            f"{len(ratios)} cases"
        )
        half = worse >= len(ratios) / 2
        return Found(text, YES if half else PARTLY if worse else NO)

    return look


OTHER_REQUESTS = (
    "the paper drew other requests from LMSYS-Chat-1M and from arXiv and does not "
    "state its sample; our traces keep prompt and answer within 4,096 tokens, and how "
    "long the documents are decides the factor."
)

HEADLINES: tuple[Headline, ...] = (
    Headline(
        "Sorted-F", "mean latency, FCFS / Sorted-F, 80/20, n = 2,000", "4.87",
        "latency", _latency_ratio("fcfs", 4.87, 0.1), OTHER_REQUESTS,
    ),
    Headline(
        "Sorted-F", "mean latency, MC-SF / Sorted-F, 80/20, n = 2,000", "2.09",
        "latency", _latency_ratio("mc-sf", 2.09, 0.1), OTHER_REQUESTS,
    ),
    Headline(
        "Sorted-F", "best schedule / linear relaxation, small instances",
        "1.03 to 1.09", "dual", _gap_to_lp,
        "the relaxation is solved to its optimum here too, for 20 to 120 requests; "
        "where few requests run at once much of the rest is the relaxation's own.",
    ),
    Headline(
        "Sorted-F", "best schedule / proven bound at full scale", "not reported",
        "certified", _certified,
        "the paper's bound stops where its solver does; ours is evaluated exactly at "
        "every size.",
    ),
    Headline(
        "Sorted-F", "exact groups", "dynamic program, up to n = 100", "groups",
        _exact_groups,
        "bounds by multipliers fix nearly every request in or out, so that little is "
        "left to search; the groups are those of the dynamic program.",
    ),
    Headline(
        "Sorted-F", "gains most where lengths are mixed", "stated", "latency", _by_mix,
        "chat alone is more alike than chat with documents; answers that vary much, as "
        "in reasoning, do as well as prompts that do.",
    ),
    Headline(
        "Sorted-F", "online: gains under overload, less in calm", "stated", "online",
        _online,
        "load is measured against a cache that is always full to the last token, which "
        "no policy reaches; against MC-SF part of the gain is that prompts count.",
    ),
    Headline(
        "SVF", "ratio 48 falls to 1 + 2 / (1 - peak / M)", "proved", "latency",
        _svf_over_sorted_f,
        "the ratio is proved again in `proofs_checks/`, in our words; beside it stands "
        "what volume order is worth on real mixes.",
    ),
    Headline(
        "MC-SF", "mean latency / hindsight optimum", "1.005 at once, 1.047 online",
        "latency", _mc_sf_gap,
        "their prompts are alike or small; the order looks at answers only, and with "
        "documents among chats that is what goes wrong. Ours is against a lower bound, "
        "not an optimum.",
    ),
    Headline(
        "A-min", "nearly as good as with known lengths", "stated", "amin", _amin,
        "their competitor is hindsight shortest first with equal prompts; ours is the "
        "same policy with exact lengths (width 0), on a stream of mixed prompts. The "
        "guarantee itself is looked at in `proofs_checks/test_claim_amin.py`.",
    ),
    Headline(
        "PARS", "best τ_b of the pairwise ranker", "0.96 (Alpaca)", "ranking",
        _tau_best,
        "other prompts, a smaller encoder of which one layer learns, hundreds of "
        "prompts instead of many thousands. Another strong model's lengths rank the "
        "same prompts only so well, and no ranker of the prompt alone need reach it.",
    ),
    Headline(
        "PARS", "pairwise above pointwise and listwise", "on all data", "ranking",
        _pairwise_first,
        "all three train the same network on the same batches; with few prompts the "
        "differences are of the size of those between seeds. With more of the network "
        "trained, pairwise is above pointwise for most models (`ranking_depth`).",
    ),
    Headline(
        "PARS", "trained on another model, above pointwise on this one", "stated",
        "ranking", _across,
        "which prompts get long answers is much the same for all models of a kind, and "
        "not for a reasoning model and one that does not reason.",
    ),
    Headline(
        "PARS", "latency per token in a burst of 2,000, FCFS / PARS",
        "up to 7.7 (Llama)", "rank_worth",
        _burst_gain("mean_per_token", ("Llama 3.1 8B", "GPT-4 Turbo"), 7.7),
        "latency per token weighs short answers most, so it depends on how many there "
        "are. With a rank of given quality the figure needs no ranker.",
    ),
    Headline(
        "PARS", "the same, reasoning", "over 2 (DeepSeek-R1)", "rank_worth",
        _burst_gain("mean_per_token", ("DeepSeek-R1",), 2.0),
        "answers of a reasoning model are long and more alike.",
    ),
    Headline(
        "PARS", "P90 of latency per token, FCFS / PARS", "up to 12.3", "rank_worth",
        _burst_gain("p90_per_token", ("Llama 3.1 8B", "GPT-4 Turbo"), 12.3),
        "as for the mean.",
    ),
    Headline(
        "PARS", "scheduling as part of serving time", "0.08 %", "device_idle",
        _overhead,
        "ours decides in each step what fits until its end, in Python; theirs sorts a "
        "queue. Beside a busy device, as vLLM does by default, both cost nothing.",
    ),
    Headline(
        "UniBoost", "P99 TTLT over SRPT's with perfect lengths", "0.50 to 0.65",
        "tails", _tails("srpt", "ttlt.p99", lambda ratio: ratio <= 0.65),
        "how far SRPT's tail goes depends on how much KV it throws away, and so on the "
        "size of the cache; they measured on GPUs, ours are simulated by vLLM's rules.",
    ),
    Headline(
        "UniBoost", "P99 TTFT over SRPT's", "0.53 to 0.66", "tails",
        _tails("srpt", "ttft.p99", lambda ratio: ratio <= 0.66), "as for TTLT.",
    ),
    Headline(
        "UniBoost", "P99 TTLT over FCFS's (vLLM's order)", "below 1", "tails",
        _tails("fcfs", "ttlt.p99", lambda ratio: ratio < 1),
        "first come, first served has a good tail already; what it loses, it loses in "
        "the mean.",
    ),
    Headline(
        "UniBoost", "throughput over the rivals'", "1.01 to 1.12", "tails",
        _tails("srpt", "throughput", lambda ratio: ratio >= 1.01),
        "within a window of a stream that must be served in full, throughput differs "
        "little whatever the order; work done twice is what remains.",
    ),
    Headline(
        "UniBoost", "tighter TTFT limit at 99 % than by ranks", "2.9 to 8.7 times",
        "tails", _tails("pars", "ttft_limit_99", lambda r: r >= 2.9, inverse=True),
        "ranks here have errors of a stated size, and PARS's limit on waiting is on.",
    ),
    Headline(
        "UniBoost", "P99 TTLT without one queue for both phases", "worse", "tails",
        _ablation("distboost"), "prompts wait behind answers.",
    ),
    Headline(
        "UniBoost", "P99 TTLT without MemGuard", "worse", "tails",
        _ablation("uniboost-base"),
        "without it requests are evicted in favour of each other; room to grow "
        "(`headroom`) does much of the same.",
    ),
)  # fmt: skip
"""Every line of the page, paper by paper."""
