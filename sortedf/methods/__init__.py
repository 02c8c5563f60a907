"""Methods by name; importing this package fills the tables."""

from sortedf.methods import auto, baselines, best_list, improve, sorted_f
from sortedf.methods.table import METHODS, RULES, Method, Outcome, Rule

__all__ = [
    "METHODS",
    "RULES",
    "Method",
    "Outcome",
    "Rule",
    "auto",
    "baselines",
    "best_list",
    "improve",
    "sorted_f",
]
