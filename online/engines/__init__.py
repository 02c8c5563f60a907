"""One file for each engine that `sortedf run` can drive."""
