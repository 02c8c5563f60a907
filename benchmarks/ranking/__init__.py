"""Learned rankers of prompts, and what a rank is worth."""
