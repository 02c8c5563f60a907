"""A real vLLM engine: agreement, gains, cost, batch files."""
