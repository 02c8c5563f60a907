"""Schedules of backlogs: quality, time, and rivals."""
