"""Ranking prompts by how long their answers will be (PARS, arXiv 2510.03243).

An encoder of BERT's kind with one linear layer is trained on prompts and the lengths of
their answers; its score says which of two prompts has the longer answer. Needs the
extra `rank`; nothing heavy is loaded before it is used.
"""

from online.ranking.ranker import Ranker, load_ranker
from online.ranking.ranking_error import RankingError

__all__ = ["Ranker", "RankingError", "load_ranker"]
