"""The commands about streams, engines and rankers; `sortedf.cli` finds them by name."""
