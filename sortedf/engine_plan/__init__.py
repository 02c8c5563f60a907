"""Plans for an engine with chunked prefills and step times in seconds.

Prompts may be cut into chunks, steps differ in length, and time is in seconds.
"""
