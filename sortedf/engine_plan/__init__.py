"""Requests on an engine that people run: its rules, its step times, and plans for it.

Here prompts may be cut into chunks, steps differ in length, and time is in seconds.
"""
