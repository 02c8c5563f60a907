"""`sortedf longest`: the longest prompts of a trace."""

from pathlib import Path

import numpy as np

from sortedf.traces import read_trace

HELP = "Show the longest prompts of a trace."
EXAMPLE = "Example: sortedf longest mix.csv --count 3"


def command(trace: Path, count: int = 1) -> None:
    """Print row and length of the longest prompts."""
    requests = read_trace(trace)
    for i in np.argsort(-requests.prefill, kind="stable")[:count]:
        print(f"row {requests.row[i]}: {requests.prefill[i]} tokens")
