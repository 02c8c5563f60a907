"""Policies while requests arrive."""
