"""Online scheduling policies, simulated and inside a real engine.

A policy gets a snapshot before each step and decides which requests to start and which
to evict; the same object runs in the step engine (`online.step_engine`, vLLM's rules
without a model) and in vLLM (`online.executor`). Builds on `sortedf` and `lp`.
"""
