"""The command line; the only part that may import all three packages, lazily."""
