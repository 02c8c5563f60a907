"""Batch files: OpenAI's format in, the same format out, in solver order, resumable.

`batch_file` reads, `lengths` says how long answers will be, `ranking` asks a trained
ranker, `method` turns a name into what the engine's scheduler follows, `serving` is
the one file that touches vLLM's serving API, `runner` lets requests run, `journal`
keeps what is done, and `job` puts them together. Nothing here imports vLLM before an
engine is started.
"""
