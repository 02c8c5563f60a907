"""Batch files: OpenAI's format in, the same format out, in solver order, resumable.

`batch_file` reads requests, `expected_lengths` determines expected answer lengths,
`ranked_requests` calls a trained ranker, `batch_method` converts a method's name to
scheduler options, `serving` is the only file that uses vLLM's serving API, `runner`
runs the requests, `journal` stores finished ones, and `job` combines them. vLLM is not
imported before an engine is started.
"""
