"""Policies that run while requests arrive: simulated, and inside a real engine.

A policy sees a snapshot before each step and answers which requests to start and which
to evict; the same object serves the step engine (`online.step_engine`, vLLM's rules
without a model) and vLLM (`online.executor`). Builds on `sortedf` and `lp`.
"""
