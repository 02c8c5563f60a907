"""What a refusal looks like from outside."""

from __future__ import annotations

import re

from sortedf.jit import COMPILING

NOTES = r"sortedf: (read [\d,]+ requests|each step is taken as)"
"""What commands say before they find a mistake."""


def refused(result: tuple[int, str, str]) -> str:
    """The message of a refusal: exit code 2, one line, nothing on standard output."""
    code, out, err = result
    err = err.removeprefix(f"sortedf: {COMPILING}\n")
    lines = err.splitlines(keepends=True)
    err = "".join(line for line in lines if not re.match(NOTES, line))
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("sortedf: error: ")
    assert "Traceback" not in err
    return err.removeprefix("sortedf: error: ").rstrip("\n")
