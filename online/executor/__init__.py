"""Drives a real vLLM engine with the policies of `online.policies`.

Nothing here imports vLLM before it is needed; `vllm_scheduler` and the files that it
alone imports touch its internals. `policy_host` and `expectations` serve any engine.
"""
