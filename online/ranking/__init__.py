"""Ranking of prompts by expected answer length (PARS, arXiv 2510.03243).

A BERT-like encoder with one linear layer is trained on prompts and the lengths of their
answers; a higher score predicts a longer answer. Needs the extra `rank`, whose packages
are loaded only when they are used.
"""

from online.ranking.ranker import Ranker, load_ranker
from online.ranking.ranking_error import RankingError

__all__ = ["Ranker", "RankingError", "load_ranker"]
