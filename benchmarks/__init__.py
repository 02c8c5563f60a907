"""Benchmarks: speed of kernels, quality of schedules, and a large random search.

`python -m benchmarks --help` lists them; results go to `benchmarks/results`.
"""
