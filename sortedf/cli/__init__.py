"""The command line: what all commands share, and those of the solver."""
