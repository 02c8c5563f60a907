"""Methods by name, one file each; the tables find every file here."""

from sortedf.methods.table import METHODS, RULES, Method, Outcome, Rule

__all__ = ["METHODS", "RULES", "Method", "Outcome", "Rule"]
