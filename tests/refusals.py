"""What a refusal looks like from outside."""

from __future__ import annotations

from sortedf.jit import COMPILING


def refused(result: tuple[int, str, str]) -> str:
    """The message of a refusal: exit code 2, one line, nothing on standard output."""
    code, out, err = result
    err = err.removeprefix(f"sortedf: {COMPILING}\n")
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("sortedf: error: ")
    assert "Traceback" not in err
    return err.removeprefix("sortedf: error: ").rstrip("\n")
