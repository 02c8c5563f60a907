"""The policies; importing this package registers them."""

from online.policies import (
    aged,
    distboost,
    hrrn,
    las,
    listed,
    mlfq,
    one_bit,
    pars,
    planned,
    sorted_f,
    srpt,
    uniboost,
    volume_boost,
)

__all__ = [
    "aged",
    "distboost",
    "hrrn",
    "las",
    "listed",
    "mlfq",
    "one_bit",
    "pars",
    "planned",
    "sorted_f",
    "srpt",
    "uniboost",
    "volume_boost",
]
