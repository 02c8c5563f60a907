"""Commands of the relaxation."""
