"""One file per claim about schedules, methods and bounds; see README.md."""
