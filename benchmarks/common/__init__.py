"""What benchmarks of several kinds share."""
