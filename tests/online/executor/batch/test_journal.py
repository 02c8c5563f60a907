"""The journal: whole lines count, torn ones never were, one run at a time."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.executor.batch import journal as journal_module
from online.executor.batch.answer_lines import Answer
from online.executor.batch.batch_errors import JournalError, UnfinishedError
from online.executor.batch.journal import BEGINS, Header, Journal

HEADER = Header("0" * 64, "model", {"method": "svf"})


def answer(custom_id, text="", failed=False):
    """An answer in spacing of its own, with letters beyond ASCII as they are."""
    content = {"custom_id": custom_id, "text": text, "error": "no" if failed else None}
    separators = (",", ":") if failed else None
    line = json.dumps(content, ensure_ascii=False, separators=separators)
    return custom_id, Answer(line, failed=failed)


ANSWERS = [
    answer("a", "one\n"),
    answer('"b,\u2028\\', "ü\u2028", failed=True),
    answer("c"),
]


def written(folder, answers=ANSWERS):
    """Write a journal; return its path and content."""
    journal = Journal(folder / "out.jsonl", HEADER)
    for answer in answers:
        journal.append([answer])
    journal.close()
    return journal.path, journal.path.read_bytes()


def contents(journal):
    return list(journal.output_lines(journal.entries))


def test_keeps_every_byte_of_every_output(tmp_path):
    written(tmp_path)
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    assert list(journal.entries) == [name for name, _ in ANSWERS]
    assert contents(journal) == [a.line.encode() + b"\n" for _, a in ANSWERS]
    assert journal.num_failed == 1
    journal.close(remove=True)
    journal.close()
    assert not journal.path.exists()


def test_who_is_there_stays_as_it_is(tmp_path):
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    journal.append([*ANSWERS, answer("a", "another", failed=True)])
    journal.append([answer("a", "another", failed=True)])
    assert contents(journal) == [a.line.encode() + b"\n" for _, a in ANSWERS]
    journal.close()


def test_torn_at_every_byte(tmp_path):
    """Cut anywhere, the journal holds exactly the whole lines, and can go on."""
    path, content = written(tmp_path)
    header = content.index(b"\n") + 1
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        journal = Journal(tmp_path / "out.jsonl", HEADER)
        whole = content[header:cut].count(b"\n") if cut >= header else 0
        assert list(journal.entries) == [name for name, _ in ANSWERS[:whole]]
        journal.append(ANSWERS[whole:])
        assert contents(journal) == [a.line.encode() + b"\n" for _, a in ANSWERS]
        journal.close()
        assert path.read_bytes() == content


@given(
    names=st.lists(st.text(min_size=1), unique=True, max_size=6),
    texts=st.lists(st.text(), min_size=6, max_size=6),
    data=st.data(),
)
def test_any_names_and_texts_and_any_cut(tmp_path_factory, names, texts, data):
    names = [name.encode("utf-8", "ignore").decode() + str(i)
             for i, name in enumerate(names)]  # fmt: skip
    answers = [
        answer(name, text.encode("utf-8", "ignore").decode(), failed=len(text) % 2 == 0)
        for name, text in zip(names, texts, strict=False)
    ]
    path, content = written(tmp_path_factory.mktemp("journal"), answers)
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    journal = Journal(path.with_suffix(""), HEADER)
    whole = max(content[:cut].count(b"\n") - 1, 0)
    assert [(name, entry.failed) for name, entry in journal.entries.items()] == [
        (name, answer.failed) for name, answer in answers[:whole]
    ]
    assert contents(journal) == [a.line.encode() + b"\n" for _, a in answers[:whole]]
    journal.close()


@pytest.mark.parametrize("tail", [b"\0\0\0\0", b"\0\0\n", b'{"custom_id": 1}', b"x"])
def test_a_last_line_of_rubbish_is_cut_off(tmp_path, tail):
    path, content = written(tmp_path)
    path.write_bytes(content + tail)
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    assert len(journal.entries) == len(ANSWERS)
    journal.close()
    assert path.read_bytes() == content


def test_damage_in_the_middle_is_refused(tmp_path):
    path, content = written(tmp_path)
    first, second, *rest = content.splitlines(keepends=True)
    path.write_bytes(b"".join([first, second[:9] + b"\n", *rest]))
    with pytest.raises(JournalError, match=r"line 2 is damaged, .*: move the journal"):
        Journal(tmp_path / "out.jsonl", HEADER)


def entry_line(output='{"custom_id": "d", "error": null}', name='"d"', failed="false"):
    line = f'{{"custom_id": {name}, "failed": {failed}, "output": {output}}}\n'
    return line.encode()


@pytest.mark.parametrize(
    "line",
    [
        entry_line().replace(b": ", b":"),
        entry_line().replace(b", ", b","),
        entry_line('{"custom_id": "e", "error": null}'),
        entry_line('{"error": null}'),
        entry_line('{"custom_id": "d", "error": "no"}'),
        entry_line(failed="true"),
        entry_line(failed="0"),
        entry_line('{"custom_id": 4, "error": null}', name="4"),
        entry_line('{"custom_id": ["d"], "error": null}', name='["d"]'),
        entry_line('"d"'),
        entry_line("[]"),
        entry_line("[" * 100_000 + "]" * 100_000),
        entry_line('{"custom_id": "d", "error": null}, "custom_id": "d"'),
        entry_line('{"custom_id": "a", "error": null}', name='"a"'),  # there already
        b"[" * 100_000 + b"\n",
        b"[]\n",
        b"null\n",
        b'{"custom_id": 1}\n',
        b"x\n",
        b"\n",
        b"\xff\n",
    ],
)
@pytest.mark.parametrize("follows", [b"", entry_line()])
def test_what_no_run_wrote_is_damage(tmp_path, line, follows):
    """A journal with other separators gave broken output, and was then removed."""
    path, content = written(tmp_path)
    path.write_bytes(content + entry_line())
    Journal(tmp_path / "out.jsonl", HEADER).close()
    path.write_bytes(content + line + follows)
    with pytest.raises(JournalError, match=r"line 5 is damaged, .*: move the journal"):
        Journal(tmp_path / "out.jsonl", HEADER)
    assert path.read_bytes() == content + line + follows


def test_requests_of_another_input_are_damage(tmp_path):
    written(tmp_path)
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    journal.refuse_others([name for name, _ in ANSWERS])
    with pytest.raises(JournalError, match="it has a request 'c', which the input has"):
        journal.refuse_others([name for name, _ in ANSWERS[:2]])
    journal.close()


def test_links_are_not_followed(tmp_path):
    """They lead out of the folder, to a file that would have been written to."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    (tmp_path / "out.jsonl.journal").symlink_to(victim)
    with pytest.raises(JournalError, match="it is a link, which is not followed"):
        Journal(tmp_path / "out.jsonl", HEADER)
    assert victim.read_bytes() == b""


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "out.jsonl.journal")
    with pytest.raises(JournalError, match="it is no regular file"):
        Journal(tmp_path / "out.jsonl", HEADER)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (Header("1" * 64, "model", {}), "another input file: finish that run, remove"),
        (Header("0" * 64, "other", {}), "another model, model: finish that run"),
    ],
)
def test_another_runs_journal_is_refused(tmp_path, header, message):
    path, content = written(tmp_path)
    with pytest.raises(JournalError, match=message):
        Journal(tmp_path / "out.jsonl", header)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [
        b"my notes",
        b"my notes\n",
        b'{"a": 1}\n',
        b"[]\n",
        b"[" * 100_000 + b"\n",
        BEGINS + b', "sha256": [], "model": 1, "settings": [1]}\n',
        BEGINS + b"}\n",
        b'{"format": ["sortedf run-batch 1"]}\n',
    ],
)
def test_somebody_elses_file_is_left_alone(tmp_path, content):
    path = tmp_path / "out.jsonl.journal"
    path.write_bytes(content)
    with pytest.raises(JournalError, match="is no journal of run-batch"):
        Journal(tmp_path / "out.jsonl", HEADER)
    assert path.read_bytes() == content


def test_settings_may_differ(tmp_path):
    written(tmp_path)
    journal = Journal(tmp_path / "out.jsonl", Header("0" * 64, "model", {"seqs": 3}))
    assert journal.settings == HEADER.settings
    journal.close()


def test_one_run_at_a_time(tmp_path):
    """The lock is a process's own, so the other one is another process."""
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    program = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+b')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: print('locked')\n"
    )
    command = [sys.executable, "-c", program, str(journal.path)]
    assert subprocess.check_output(command, text=True) == "locked\n"
    journal.close()
    assert subprocess.check_output(command, text=True) == ""


def test_a_lock_of_another_run_is_not_waited_for(tmp_path, monkeypatch):
    asked = []

    def refuse(number, how):
        asked.append(how)
        raise BlockingIOError

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(JournalError, match="is in use: another run writes"):
        Journal(tmp_path / "out.jsonl", HEADER)
    assert asked == [fcntl.LOCK_EX | fcntl.LOCK_NB]


def test_nothing_stays_open(tmp_path, monkeypatch):
    """A server that refuses a thousand outputs has as many files left as before."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "pipe.journal")
    before = len(os.listdir("/proc/self/fd"))
    Journal(tmp_path / "out.jsonl", HEADER).close()
    with pytest.raises(JournalError, match="it is no regular file"):
        Journal(tmp_path / "folder" / "pipe", HEADER)
    removed = []
    lock = fcntl.lockf

    def lock_late(number, how):
        if not removed:
            removed.append((tmp_path / "late.journal").unlink())
        lock(number, how)

    monkeypatch.setattr(fcntl, "lockf", lock_late)
    Journal(tmp_path / "late", HEADER).close()
    assert removed

    def refuse(number, how):
        raise BlockingIOError

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(JournalError, match="is in use"):
        Journal(tmp_path / "out.jsonl", HEADER)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_new_journal_is_as_readable_as_the_mask_allows(tmp_path):
    mask = os.umask(0o022)
    try:
        path, _ = written(tmp_path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("part", [1, 7])
def test_a_line_that_never_ends_is_damage(tmp_path, monkeypatch, part):
    """A file of zeros would be read into memory whole."""
    path, content = written(tmp_path)
    longest = max(map(len, content.split(b"\n")))
    monkeypatch.setattr(journal_module, "PART", part)
    monkeypatch.setattr(journal_module, "MOST_IN_LINE", longest)
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    assert list(journal.entries) == [name for name, _ in ANSWERS]
    journal.close()
    monkeypatch.setattr(journal_module, "MOST_IN_LINE", longest - part)
    with pytest.raises(JournalError, match="is damaged: it has a line of more than"):
        Journal(tmp_path / "out.jsonl", HEADER)
    assert path.read_bytes() == content


def test_a_journal_that_was_removed_while_it_was_opened(tmp_path, monkeypatch):
    """Another run finished between the opening and the lock: a new file is begun."""
    path, _ = written(tmp_path)
    lock = fcntl.lockf

    def lock_late(number, how):
        monkeypatch.setattr(fcntl, "lockf", lock)
        path.unlink()
        lock(number, how)

    monkeypatch.setattr(fcntl, "lockf", lock_late)
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    assert not journal.entries
    journal.append(ANSWERS[:1])
    journal.close()
    assert path.read_bytes().count(b"\n") == 2


def test_what_is_said_to_be_kept_is_on_the_disk(tmp_path, monkeypatch):
    """The file after every write, its folder once the file is there."""
    calls = []

    def record(name):
        original = getattr(os, name)

        def call(number, *rest):
            calls.append((name, os.readlink(f"/proc/self/fd/{number}")))
            return original(number, *rest)

        monkeypatch.setattr(os, name, call)

    record("pwrite")
    record("fsync")
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    file = str(journal.path)
    assert calls == [("pwrite", file), ("fsync", file), ("fsync", str(tmp_path))]
    for answer in ANSWERS:
        calls.clear()
        journal.append([answer])
        assert calls == [("pwrite", file), ("fsync", file)]
    journal.close()


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    """What could not be written whole is taken back."""
    journal = Journal(tmp_path / "out.jsonl", HEADER)
    journal.append(ANSWERS[:1])
    original = os.pwrite

    def short(number, content, offset):
        if len(content) < 10:
            raise OSError(28, "No space left on device")
        return original(number, content[: len(content) // 2], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", short)
        with pytest.raises(
            UnfinishedError, match="No space left on device; free disk space"
        ):
            journal.append(ANSWERS[1:])
    assert list(journal.entries) == ["a"]
    journal.append(ANSWERS[2:])
    journal.close()
    again = Journal(tmp_path / "out.jsonl", HEADER)
    assert list(again.entries) == ["a", "c"]
    again.close()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(JournalError, match="cannot be written: No such file"):
        Journal(tmp_path / "none" / "out.jsonl", HEADER)
