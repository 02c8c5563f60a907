"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from sortedf.atomic import atomic_path, refuse_unwritable
from sortedf.errors import OutputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def _half(path, error):
    path.write_text("half")
    raise error


def test_the_file_appears_at_the_end(tmp_path):
    """Until then there is a temporary file with the same suffix beside it."""
    path = tmp_path / "plot.png"
    with atomic_path(path) as temporary:
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".png")
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert names(tmp_path) == ["plot.png"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_changes_nothing(tmp_path, error):
    """The old file stays, the temporary one goes, and the error comes through."""
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(error), atomic_path(path) as temporary:
        _half(temporary, error)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


def test_a_failing_disk_is_the_output_s_error(tmp_path):
    """It names the file that was asked for, not the temporary one."""
    path = tmp_path / "a.json"
    with pytest.raises(OutputError) as caught, atomic_path(path):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == f"{path} cannot be written: No space left on device."
    assert names(tmp_path) == []


def test_a_failing_last_move_leaves_nothing(tmp_path, monkeypatch):
    """The temporary file goes then, too."""

    def refuse(*_paths):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OutputError, match="denied"), atomic_path(tmp_path / "a") as new:
        new.write_text("new")
    assert names(tmp_path) == []


def test_what_cannot_be_a_file_is_refused(tmp_path):
    """A missing folder, a folder, a file as folder, and names that are none."""
    (tmp_path / "file").write_text("")
    cases = {
        tmp_path / "gone" / "a.json": f"the folder {tmp_path / 'gone'} does not exist",
        tmp_path: "it is a folder",
        tmp_path / "file" / "a.json": "Not a directory",
        "": "it is no file name",
        "a\0b": "it is no file name",
    }
    for path, reason in cases.items():
        with pytest.raises(OutputError, match=reason), atomic_path(path):
            pytest.fail("the body must not run")
    assert names(tmp_path) == ["file"]


def test_the_mode_is_the_old_file_s_or_the_usual_one(tmp_path):
    """Not that of temporary files, which only their owner can read."""
    old, new, usual = (tmp_path / name for name in ("old", "new", "usual"))
    usual.write_text("")
    old.write_text("")
    old.chmod(0o640)
    for path in (old, new):
        with atomic_path(path) as temporary:
            temporary.write_text("x")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (old, new, usual)]
    assert modes == [0o640, modes[2], modes[2]]


def test_a_link_keeps_its_target(tmp_path):
    """The file that it points to is written, and the link stays a link."""
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "file")
    with atomic_path(link) as temporary:
        temporary.write_text("x")
    assert link.is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "x"


def test_a_device_is_written_to_directly():
    """Replacing /dev/null by a file would harm the whole machine."""
    with atomic_path(os.devnull) as temporary:
        temporary.write_text("x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_output_is_never_an_input_or_another_output(tmp_path):
    """By whatever name it is called: nothing told, and the trace was gone."""
    trace, link, hard = (tmp_path / name for name in ("trace", "link", "hard"))
    trace.write_text("precious")
    link.symlink_to(trace)
    hard.hardlink_to(trace)
    for path in (trace, link, hard, tmp_path / "." / "trace"):
        with pytest.raises(OutputError, match="cannot be written: it is an input"):
            refuse_unwritable(None, path, inputs=[None, "gone", trace])
    for pair in ((trace, link), (tmp_path / "new", f"{tmp_path}/./new")):
        with pytest.raises(OutputError, match="it is another output too"):
            refuse_unwritable(*pair)
    refuse_unwritable(os.devnull, os.devnull, inputs=[os.devnull])
    refuse_unwritable(tmp_path / "new", tmp_path / "other", inputs=[tmp_path])
    assert names(tmp_path) == ["hard", "link", "trace"]


def test_a_pipe_without_a_name_is_written_to_directly():
    """`-o /dev/stdout | cat`: the link is to "pipe:[123]", which does not exist."""
    read, write = os.pipe()
    path = f"/dev/fd/{write}"
    refuse_unwritable(path)
    with atomic_path(path) as pipe:
        pipe.write_text("x")
    os.close(write)
    with os.fdopen(read) as file:
        assert file.read() == "x"
