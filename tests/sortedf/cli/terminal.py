"""A pseudo-terminal, in which a command runs as in front of a person."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(width: int, *arguments: object) -> tuple[int, list[str]]:
    """Run a command on a terminal of `width` columns; return its code and lines.

    Progress goes to standard error, which is no terminal here.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-m", "sortedf", *map(str, arguments)],
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not some:
            break
        shown += some
    os.close(ours)
    text = ESCAPES.sub("", shown.decode())
    return process.wait(), text.replace("\r\n", "\n").split("\n")
