"""Commands for simulation, engines and rankers; `sortedf.cli` finds them by name."""
