"""Atomic and reproducible writing of figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sortedf.atomic import atomic_path
from sortedf.plotting.canvas import matplotlib

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

DPI = 150

# None removes dates and versions, so that the same figure gives the same bytes.
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def plot_format(path: str | PathLike[str]) -> str:
    """Format given by a file name's suffix: "png", "svg" or "pdf".

    Raises
    ------
    ValueError
        If there is no suffix or another one.
    """
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in METADATA:
        raise ValueError(
            f"cannot plot to {str(path)!r}: the name must end in .png, .svg or .pdf."
        )
    return suffix


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure in the format of the file name's suffix: png, svg or pdf.

    Raises
    ------
    ValueError
        If the suffix is another one.
    sortedf.OutputError
        If the file cannot be written; an existing file stays unchanged.
    """
    form = plot_format(path)
    # Without a salt, the ids of SVG elements are random.
    options = {"svg.hashsalt": "sortedf"}
    with matplotlib().rc_context(options), atomic_path(path) as unfinished:
        figure.savefig(unfinished, format=form, dpi=DPI, metadata=METADATA[form])
