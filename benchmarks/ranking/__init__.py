"""Learned rankers of prompts, and the gain from ranks."""
