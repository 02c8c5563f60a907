"""Progress of long work, in a log and on a terminal."""

from __future__ import annotations

import io
import sys


def test_progress_lines_in_a_log(capsys, monkeypatch):
    """Where standard error is no terminal, long work says how far it is."""
    from sortedf.cli import progress

    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    with progress.progress("work") as report:
        report(1000, 5000)
    assert capsys.readouterr().err == "sortedf: work: 1,000 of 5,000\n"


def test_progress_bar_on_a_terminal(monkeypatch):
    """On a terminal it is a bar, and it goes away."""
    from sortedf.cli import progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress("work") as report:
        report(1, 2)
        report(2, 2)
    erase = "\x1b[2K"
    assert "work" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith(erase)
