"""Code shared by the benchmarks of this folder."""
