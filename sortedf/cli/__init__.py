"""The command line: common parts of all commands, and the solver's commands."""
