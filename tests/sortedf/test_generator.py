"""Generated traces look like the published ones, and repeat."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy.stats import ks_2samp, spearmanr

from sortedf.generator import KINDS, generate
from sortedf.generator.shared_prompts import SHARED_KINDS
from sortedf.traces import read_trace, write_trace
from tests.real_data import FOLDER, needs_data

SOURCES = {
    "chat": ("lmsys_chat_first_turn", 0.220),
    "documents": ("arxiv_summarization_4k", -0.114),
    "code": ("azure_2023_code", -0.021),
    "reasoning": ("servegen_deepseek_r1_resampled", -0.371),
}
QUANTILES = [0.01, 0.05, *np.arange(1, 10) / 10, 0.95, 0.99, 0.999]
PUBLISHED = {
    ("chat", "prefill"): [2, 3, 6, 10, 14, 19, 28, 40, 66, 109, 302, 432, 750, 1320],
    ("chat", "decode"): [2, 8, 12, 28, 54, 90, 140, 216, 298, 384, 512, 520, 850, 1062],
    ("documents", "prefill"): [
        *(73, 748, 1242, 1802, 2150, 2453, 2730, 2996, 3249, 3490, 3702, 3813, 3933),
        4011,
    ],
    ("documents", "decode"): [
        *(36, 60, 78, 104, 125, 145, 167, 192, 222, 268, 372, 736, 3271, 3844),
    ],
}
N = 100_000


@cache
def large(kind):
    return generate(kind, N, seed=1)


@pytest.mark.parametrize(("kind", "field"), PUBLISHED)
def test_quantiles_are_the_published_ones(kind, field):
    """Shares are off by at most 0.03.

    0.005 is the error of the points that the generator interpolates, and sampling adds
    about 0.004 at this size. Documents have more, 0.025, as pairs of more than 4,096
    tokens are drawn again, which thins out long prompts.
    """
    lengths = np.sort(getattr(large(kind), field))
    for q, length in zip(QUANTILES, PUBLISHED[kind, field], strict=True):
        below = np.searchsorted(lengths, length, "left") / N
        up_to = np.searchsorted(lengths, length, "right") / N
        assert below - 0.03 <= q <= up_to + 0.03, (q, length)


@needs_data
@pytest.mark.parametrize("kind", SOURCES)
def test_distributions_are_those_of_the_real_traces(kind):
    """Kolmogorov-Smirnov distance at most 0.03, means within 5 %."""
    real = read_trace(FOLDER / "traces" / f"{SOURCES[kind][0]}.csv.gz")
    generated = large(kind)
    for field in ("prefill", "decode"):
        ours, theirs = getattr(generated, field), getattr(real, field)
        assert ks_2samp(ours, theirs).statistic <= 0.03
        assert ours.mean() == pytest.approx(theirs.mean(), rel=0.05)


@pytest.mark.parametrize("kind", SOURCES)
def test_lengths_are_correlated_as_published(kind):
    """Spearman's rank correlation, within 0.03."""
    generated = large(kind)
    rho = spearmanr(generated.prefill, generated.decode).statistic
    assert rho == pytest.approx(SOURCES[kind][1], abs=0.03)


def test_the_atom_of_the_chat_service_is_there():
    """4.7 % of its answers were cut at 512 tokens."""
    decode = large("chat").decode
    assert np.isin(decode, (512, 513)).mean() == pytest.approx(0.047, abs=0.003)


def test_documents_keep_to_the_limit_of_their_source():
    """Prompt and answer together have at most 4,096 tokens."""
    generated = large("documents")
    assert (generated.prefill + generated.decode).max() <= 4096


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_file(tmp_path, kind):
    """To the byte; another seed gives another."""
    contents = []
    for i, seed in enumerate((7, 7, 8)):
        path = tmp_path / f"{i}.csv"
        write_trace(generate(kind, 300, rate=2.0, seed=seed), path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_a_mix_has_its_share_of_documents_in_between():
    """Documents have long prompts, and are not all at one end."""
    generated = generate("mix", 10_000, long_share=0.3, seed=3)
    long = np.flatnonzero(generated.prefill > 1400)
    # 14 % of documents are shorter, 0.1 % of chats longer.
    assert len(long) == pytest.approx(3000 * 0.86, rel=0.05)
    assert long.mean() == pytest.approx(5000, rel=0.05)


@pytest.mark.parametrize("share", [0, 1])
def test_a_mix_may_be_of_one_sort(share):
    """With 0 % or 100 % documents."""
    generated = generate("mix", 500, long_share=share)
    assert (np.median(generated.prefill) > 1000) == bool(share)


def test_one_request_is_a_trace():
    """Whatever the kind."""
    for kind in KINDS:
        assert generate(kind, 1, rate=1.0).arrival_s.tolist() == [0]


def test_arrivals_are_poisson():
    """The first at 0, gaps with the mean and the deviation of an exponential."""
    generated = generate("chat", 20_000, rate=4.0, seed=2)
    gaps = np.diff(generated.arrival_s)
    assert generated.arrival_s[0] == 0
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(0.25, rel=0.03)
    assert gaps.std() == pytest.approx(0.25, rel=0.05)


def test_lengths_do_not_depend_on_the_rate():
    """So that the same requests can be looked at as a backlog and online."""
    waiting, arriving = (generate("mix", 200, rate=rate) for rate in (None, 3.0))
    assert np.array_equal(waiting.prefill, arriving.prefill)
    assert not waiting.arrival_s.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kind": "mixed"},
            "unknown kind 'mixed'; choose one of: mix, chat",
        ),
        ({"n": 0}, "n = 0 but must be an integer from 1 to"),
        ({"n": 2.5}, "n = 2.5 but must be an integer"),
        ({"n": "5"}, "n must be an integer but is '5'"),
        ({"seed": -1}, "seed = -1 but must be an integer from 0 to"),
        ({"long_share": 1.5}, "long_share = 1.5 but must be a number from 0 to 1"),
        ({"long_share": float("nan")}, "long_share = nan but must be a number"),
        ({"rate": 0}, "rate = 0 but must be a number above 0 requests per second"),
        ({"rate": float("inf")}, "rate = inf but must be a number"),
        ({"rate": True}, "rate = True but must be a number"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    """With the argument's name and what is allowed."""
    with pytest.raises((ValueError, TypeError), match=message):
        generate(**{"kind": "mix", "n": 5, **arguments})


def test_long_share_is_refused_where_it_means_nothing():
    """An ignored argument would look as if it had worked."""
    with pytest.raises(ValueError, match="long_share is for kind 'mix' only"):
        generate("chat", 10, long_share=0.5)


@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_prompts_share_prefixes(kind):
    """As many as asked for, in whole blocks, and each prompt is longer."""
    trace = generate(kind, 60, seed=3, per_prefix=6)
    ids = trace.prefix_ids
    assert ids is not None
    lists = [tuple(ids[i].tolist()) for i in range(60)]
    counts = Counter(lists)
    assert len(counts) == 10 if SHARED_KINDS[kind].exact else 2 <= len(counts) <= 10
    if SHARED_KINDS[kind].exact:
        assert set(counts.values()) == {6}
    for own, prefill in zip(lists, trace.prefill.tolist(), strict=True):
        assert 0 <= len(own) * ids.tokens_per_id <= prefill
    # Ids of different prefixes are different, but for the rules that all begin with.
    rules = SHARED_KINDS[kind].rules // ids.tokens_per_id
    tails = Counter(i for own in counts for i in own[rules:])
    assert set(tails.values()) <= {1}


def test_samples_have_the_same_prompt():
    """And answers of their own."""
    trace = generate("samples", 16, seed=3)
    assert len(set(trace.prefill.tolist())) == 2
    assert len(set(trace.decode.tolist())) > 8


def test_prefixes_only_where_they_are_shared():
    """One line that lists the kinds."""
    with pytest.raises(ValueError, match=r"per_prefix is for system-prompts, .* 'mix'"):
        generate("mix", 5, per_prefix=3)


def test_conversations_hold_what_was_said():
    """Each prompt begins with the one before; turns and pauses as asked."""
    trace = generate("conversations", 3000, seed=5, turns=3, think_s=10, rate=2.0)
    sessions, ids = trace.sessions, trace.prefix_ids
    assert sessions is not None
    assert ids is not None
    later = np.flatnonzero(~sessions.is_first)
    before = sessions.previous[later]
    whole = trace.prefill + trace.decode
    assert (trace.prefill[later] > whole[before]).all()
    assert whole[later].max() <= 8192
    for i, j in zip(later.tolist(), before.tolist(), strict=True):
        assert ids[i][: len(ids[j])].tolist() == ids[j].tolist()
        assert len(ids[i]) == trace.prefill[i] // ids.tokens_per_id
    assert 3000 / int(sessions.is_first.sum()) == pytest.approx(3, rel=0.1)
    assert sessions.think_s[later].mean() == pytest.approx(10, rel=0.15)
    assert trace.arrival_s.max() == pytest.approx(1500, rel=0.15)
    # Texts of different sessions are different, but for the system prompts.
    first = np.flatnonzero(sessions.is_first)
    ends = [ids[i][-1] for i in [*(first[1:] - 1), 2999] if len(ids[i]) > 250]
    assert len(set(ends)) == len(ends)


def test_turns_only_for_conversations():
    with pytest.raises(ValueError, match="turns and think_s are for conversations"):
        generate("chat", 5, turns=2)
    with pytest.raises(ValueError, match=r"turns = 0\.5 but must be a number at least"):
        generate("conversations", 5, turns=0.5)
