"""Draw the transformations of one instance: `python -m proofs_checks.draw FOLDER`.

Three pictures: Sorted-F's schedule, the same groups separated, and the schedule of
smallest volume first with the groups that its first half is packed into.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from proofs_checks.tiny import checked
from proofs_checks.transformations import (
    groups_of,
    mixed,
    packed,
    separated,
    sorted_f,
)
from sortedf import solve
from sortedf.plotting import plot_schedule, save


def draw(folder: Path, seed: int = 1, n: int = 14) -> list[Path]:
    """Write the pictures into a folder, made if need be; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    instance = mixed(seed, n)
    found = groups_of(instance)
    fast, slow = sorted_f(instance, found), separated(instance, found)
    other = checked(instance, solve(instance, "svf", bound="none").schedule.start)
    tau = int(np.median(other.completion))
    early = packed(instance, np.flatnonzero(other.completion <= tau).tolist())
    span = sum(int(instance.decode[group].max()) for group in early)
    titles = {
        "sorted_f": (fast, f"Sorted-F, TEL {fast.tel}"),
        "separated": (slow, f"Its {len(found)} groups separated, TEL {slow.tel}"),
        "grouping": (
            other,
            f"Done by step {tau}: {len(early)} groups of {span} steps in all, "
            f"less than 5 x {tau}",
        ),
    }
    paths = []
    for name, (schedule, title) in titles.items():
        paths.append(folder / f"{name}.svg")
        save(plot_schedule(schedule, title=title), paths[-1])
    return paths


def main(arguments: list[str] | None = None) -> None:
    """Draw into the folder that is named."""
    parser = argparse.ArgumentParser(
        prog="python -m proofs_checks.draw",
        description="Draw the transformations of the proof on one instance.",
    )
    parser.add_argument("folder", type=Path, help="made if it is not there")
    for path in draw(parser.parse_args(arguments).folder):
        print(path)


if __name__ == "__main__":
    main()
