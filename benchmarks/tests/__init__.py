"""Benchmarks of the tests themselves."""
