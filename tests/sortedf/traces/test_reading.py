"""Every format is recognised by its content, and read as it says."""

from __future__ import annotations

import gzip
import os
import pickle
import threading

import numpy as np
import pytest

from sortedf.errors import TraceError
from sortedf.traces import csv_file, read, read_trace
from tests.real_data import FOLDER, needs_data
from tests.sortedf.traces.files import OWN, OWN_LINE, put

# source, content, prefill, decode, arrival_s
TABLES = {
    "own": ("sortedf", f"{OWN}5,10,3\n6.5,20,4\n", [10, 20], [3, 4], [0, 1.5]),
    "own without arrivals": (
        "sortedf",
        "prefill_tokens,decode_tokens\n10,3\n20,4\n",
        [10, 20],
        [3, 4],
        [0, 0],
    ),
    "azure": (
        "Azure",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.9799600,4808,10\n"
        "2023-11-16 18:17:04.0319600,3180,8\n",
        [4808, 3180],
        [10, 8],
        [0, 0.052],
    ),
    "azure with time zones": (
        "Azure",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,2162,5\n"
        "2024-05-10T00:00:01Z,2399,6\n"
        "2024-05-10 02:00:02+02,18,7\n",
        [2162, 2399, 18],
        [5, 6, 7],
        [0, 0.99007, 1.99007],
    ),
    "azure with seconds": (
        "Azure",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n7,1,2\n9.5,3,4\n",
        [1, 3],
        [2, 4],
        [0, 2.5],
    ),
    "burstgpt": (
        "BurstGPT",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n"
        "45,GPT-4,1087,230,1317,API log\n",
        [472, 1087],
        [18, 230],
        [0, 40],
    ),
    "vidur": (
        "Vidur",
        "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.25,396,109\n",
        [374, 396],
        [44, 109],
        [0, 4.25],
    ),
    "vidur without arrivals": (
        "Vidur",
        "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n"
        "3772,54,3826,69.85\n",
        [3772],
        [54],
        [0],
    ),
    "own lines": (
        "sortedf",
        '{"arrival_s": 1, "prefill_tokens": 10, "decode_tokens": 3}\n'
        '{"decode_tokens": 4, "prefill_tokens": 20, "arrival_s": 0.5}\n',
        [10, 20],
        [3, 4],
        [0.5, 0],
    ),
    "own list": (
        "sortedf",
        '[{"prefill_tokens": 10, "decode_tokens": 3},\n'
        ' {"prefill_tokens": 20, "decode_tokens": 4, "model": "x"}]\n',
        [10, 20],
        [3, 4],
        [0, 0],
    ),
    "usage as services log it": (
        "OpenAI usage",
        "created,model,prompt_tokens,completion_tokens\n"
        "1764500000,x,374,44\n1764500004,x,396,109\n",
        [374, 396],
        [44, 109],
        [0, 4],
    ),
    "usage with dates": (
        "OpenAI usage",
        "created,prompt_tokens,completion_tokens\n"
        "2026-11-01T10:00:00,374,44\n2026-11-01T10:00:01.5,396,109\n",
        [374, 396],
        [44, 109],
        [0, 1.5],
    ),
    "token_usage": (
        "input/output tokens",
        "created_at,input_tokens,output_tokens\n0,9,4\n2,7,5\n",
        [9, 7],
        [4, 5],
        [0, 2],
    ),
    "splitwise_sim": (
        "splitwise-sim",
        "arrival_timestamp,prompt_size,token_size\n0,9,4\n2,7,5\n",
        [9, 7],
        [4, 5],
        [0, 2],
    ),
    "llmperf": (
        "LLMPerf",
        "start_time,number_input_tokens,number_output_tokens\n0,9,4\n2,7,5\n",
        [9, 7],
        [4, 5],
        [0, 2],
    ),
    "llm_serving_sim": (
        "LLMServingSim",
        "arrival_time_ns,input_toks,output_toks\n0,9,4\n2000000000,7,5\n",
        [9, 7],
        [4, 5],
        [0, 2],
    ),
    "guidellm": (
        "GuideLLM",
        "timestamp,prompt_tokens_count,output_tokens_count\n0,9,4\n2,7,5\n",
        [9, 7],
        [4, 5],
        [0, 2],
    ),
    "mooncake": (
        "Mooncake",
        '{"timestamp": 27482, "input_length": 6955, "output_length": 52,'
        ' "hash_ids": [46, 47]}\n'
        '{"timestamp": 30535, "input_length": 6472, "output_length": 26,'
        ' "hash_ids": [46]}\n',
        [6955, 6472],
        [52, 26],
        [0, 3.053],
    ),
}


def check(path, source, prefill, decode, arrival_s):
    trace = read_trace(path)
    assert trace.source == source
    assert trace.prefill.tolist() == prefill
    assert trace.decode.tolist() == decode
    assert trace.arrival_s.tolist() == pytest.approx(arrival_s, abs=1e-12)
    return trace


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_format_is_recognised_by_its_content(tmp_path, table):
    """The file's name says nothing about it, and need not."""
    source, content, *expected = table
    check(put(tmp_path, content), source, *expected)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_gzip_is_recognised_even_under_a_wrong_suffix(tmp_path, table):
    """The first two bytes of a file tell whether it is packed, not its name."""
    source, content, *expected = table
    packed = gzip.compress(content.encode())
    check(put(tmp_path, packed, "trace.csv"), source, *expected)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_what_windows_editors_do_to_a_file_does_no_harm(tmp_path, table):
    """A byte order mark, CRLF line ends and blank lines at the end are no data."""
    source, content, *expected = table
    content = "\ufeff" + content.replace("\n", "\r\n") + "\r\n\r\n"
    check(put(tmp_path, content), source, *expected)


def test_the_last_line_needs_no_line_end(tmp_path):
    """Many programs leave it out."""
    check(put(tmp_path, OWN + "0,1,2\n0,3,4"), "sortedf", [1, 3], [2, 4], [0, 0])


def test_headers_match_whatever_their_case_and_spaces(tmp_path):
    """A hand-made file has a space here and a capital there."""
    path = put(tmp_path, " Prefill_Tokens , DECODE_TOKENS,note\n1,2,x\n")
    check(path, "sortedf", [1], [2], [0])


def test_columns_that_nobody_asked_for_may_hold_anything(tmp_path):
    """Quotes, commas, line ends and other scripts in other columns are no concern."""
    content = 'note,prefill_tokens,decode_tokens\n"a, ""b""\nc",1,2\n"é",3,4\n'
    trace = check(put(tmp_path, content), "sortedf", [1, 3], [2, 4], [0, 0])
    assert trace.row.tolist() == [3, 4]


def test_whole_floats_are_integers(tmp_path):
    """Pandas writes 5.0 for 5 where a column once had a gap."""
    path = put(tmp_path, OWN + "0,5.0,2\n0,7,1e2\n")
    check(path, "sortedf", [5, 7], [2, 100], [0, 0])
    path = put(tmp_path, '{"prefill_tokens": 5.0, "decode_tokens": 2}')
    check(path, "sortedf", [5], [2], [0])


def test_rows_count_the_lines_of_the_file(tmp_path):
    """With a blank line in between, too, so that an editor finds them."""
    trace = read_trace(put(tmp_path, OWN + "0,1,2\n\n0,3,4\n"))
    assert trace.row.tolist() == [2, 4]
    trace = read_trace(put(tmp_path, "\n" + OWN_LINE + "\n" + OWN_LINE))
    assert trace.row.tolist() == [2, 4]


def test_blocks_do_not_show(tmp_path, monkeypatch):
    """A large file is read in blocks, and rows and values go on across them."""
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    n = 500
    lines = [f"{i},{i + 1},{2 * i + 1}\n" for i in range(n)]
    lines[300] = '"300",301,601\n'
    trace = read_trace(put(tmp_path, OWN + "".join(lines)))
    assert trace.row.tolist() == list(range(2, n + 2))
    assert trace.prefill.tolist() == list(range(1, n + 1))
    assert trace.arrival_s.tolist() == list(range(n))


def test_requests_keep_the_order_of_the_file(tmp_path):
    """Ids are positions in the file, even where arrivals are not sorted."""
    trace = read_trace(put(tmp_path, OWN + "9,1,1\n4,2,1\n7,3,1\n"))
    assert trace.prefill.tolist() == [1, 2, 3]
    assert trace.arrival_s.tolist() == [5, 0, 3]


def test_times_of_day_lose_no_precision(tmp_path):
    """A tenth of a microsecond in 2023 is below the precision of seconds since 1970."""
    content = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.0000001,1,1\n2023-11-16 18:17:03.0000003,1,1\n"
    )
    assert read_trace(put(tmp_path, content)).arrival_s.tolist() == [0, 2e-7]


def test_times_of_one_zone_are_read_as_those_of_many(tmp_path):
    """The quick way and the careful way agree."""
    header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    times = ["2023-11-16 18:17:03.25", "2023-11-16 18:17:04", "2023-11-17T00:00:00.5"]
    one = header + "".join(f"{time}-05:30,1,1\n" for time in times)
    many = one + "2023-11-16 23:47:03.25Z,1,1\n"
    expected = [0, 0.75, 20577.25]
    assert read_trace(put(tmp_path, one)).arrival_s.tolist() == expected
    assert read_trace(put(tmp_path, many)).arrival_s.tolist() == [*expected, 0]


def test_a_pipe_can_be_read(tmp_path):
    """Nothing is read twice, so `zcat trace.gz |` works."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = (OWN + "0,1,2\n").encode()
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    trace = read_trace(pipe)
    writer.join()
    assert trace.prefill.tolist() == [1]


def test_read_gives_an_instance(tmp_path):
    """`read` is `read_trace` and `to_instance` in one."""
    path = put(tmp_path, OWN + "0,3,2\n1.5,1,4\n9,90,90\n")
    inst = read(path, kv_budget=8, step_time_s=0.5, drop_oversize=True)
    assert (inst.kv_budget, inst.arrival.tolist()) == (8, [0, 3])
    assert read(path, 500, backlog=True).is_backlog


@needs_data
@pytest.mark.parametrize(
    ("name", "source", "first", "last_arrival_s"),
    [
        ("azure_2023_code_head.csv", "Azure", (4808, 10), 216.838),
        ("vidur_arxiv_head.csv", "Vidur", (3772, 54), 0),
        ("vidur_splitwise_head.csv", "Vidur", (374, 44), 84.029),
        ("mooncake_synthetic_head.jsonl", "Mooncake", (40160, 6), 86.79),
    ],
)
def test_files_as_their_sources_publish_them(name, source, first, last_arrival_s):
    """The first 300 rows of four public traces."""
    trace = read_trace(FOLDER / "formats" / name)
    assert (trace.source, trace.num_requests) == (source, 300)
    assert (trace.prefill[0], trace.decode[0]) == first
    assert trace.arrival_s.max() == pytest.approx(last_arrival_s, abs=1e-3)


@needs_data
def test_the_azure_head_agrees_with_its_converted_form():
    """Our own columns and the publisher's give the same requests."""
    head = read_trace(FOLDER / "formats" / "azure_2023_code_head.csv")
    whole = read_trace(FOLDER / "traces" / "azure_2023_code.csv.gz")
    assert np.array_equal(head.prefill, whole.prefill[:300])
    assert np.array_equal(head.decode, whole.decode[:300])
    assert head.arrival_s == pytest.approx(whole.arrival_s[:300], abs=1e-6)


def test_ids_of_prompts_blocks_are_kept(tmp_path):
    """Mooncake's blocks have 512 tokens, Qwen-Bailian's 16 and times in seconds."""
    path = tmp_path / "mooncake.jsonl"
    path.write_text(
        '{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [5,6]}\n'
        '{"timestamp": 2000, "input_length": 9, "output_length": 3, "hash_ids": []}\n',
        encoding="utf-8",
    )
    trace = read_trace(path)
    assert trace.source == "Mooncake"
    assert trace.arrival_s.tolist() == [0, 2]
    assert trace.prefix_ids is not None
    assert trace.prefix_ids.tokens_per_id == 512
    assert [trace.prefix_ids[i].tolist() for i in range(2)] == [[5, 6], []]
    assert not trace.prefix_ids.ids.flags.writeable
    again = pickle.loads(pickle.dumps(trace))
    assert again.prefix_ids.ids.tolist() == [5, 6]
    path.write_text(
        '{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.5, "input_length": 33, '
        '"output_length": 2, "type": "text", "turn": 1, "hash_ids": [8, 9, 10]}\n',
        encoding="utf-8",
    )
    trace = read_trace(path)
    assert (trace.source, trace.prefix_ids.tokens_per_id) == ("Qwen-Bailian", 16)
    assert trace.prefix_ids[0].tolist() == [8, 9, 10]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ('"12"', 'hash_ids = "12" but must be a list of integers'),
        ("[1, 2.5]", "hash_ids = a list with other values but must be"),
        ("[1, true]", "hash_ids = a list with other values but must be"),
        ("[1, 99999999999999999999]", "an integer beyond 64 bits but must be"),
    ],
)
def test_wrong_ids_are_named(tmp_path, ids, words):
    """File, line, key and what is allowed."""
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"timestamp": 0, "input_length": 1024, "output_length": 3, '
        f'"hash_ids": {ids}}}\n',
        encoding="utf-8",
    )
    with pytest.raises(TraceError, match=f"line 1.*{words}"):
        read_trace(path)


@pytest.mark.parametrize("packed", [False, True])
def test_a_dash_is_standard_input(monkeypatch, packed):
    """A pipe needs no file, and is unpacked as files are."""
    content = f"{OWN}5,10,3\n6.5,20,4\n".encode()
    read_end, write_end = os.pipe()
    os.write(write_end, gzip.compress(content) if packed else content)
    os.close(write_end)
    with open(read_end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert read_trace("-").prefill.tolist() == [10, 20]


def test_closed_standard_input_is_said(monkeypatch):
    """Python has None in its place."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TraceError, match="standard input is closed"):
        read_trace("-")
