"""Code shared by benchmarks of several kinds."""
