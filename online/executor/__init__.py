"""Drives a real vLLM engine with the policies of `online.policies`.

Nothing here imports vLLM before it is needed; `vllm_scheduler` is the one file that
touches its internals.
"""
