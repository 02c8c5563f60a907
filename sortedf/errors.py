"""Exceptions of the package.

Plain misuse raises `ValueError` or `TypeError`; the classes here carry more than a
message and are caught by the command line, which turns each into one line: with exit
code 2 where the input is wrong, and 1 for a RuntimeError, where something failed.
"""

from __future__ import annotations


class SortedfError(Exception):
    """Base of the package's own exceptions."""


class OversizeError(SortedfError, ValueError):
    """Some requests can never run, however long they wait.

    Attributes
    ----------
    request_ids : tuple of int
        Every request that can never run, in ascending order.
    """

    def __init__(self, message: str, request_ids: tuple[int, ...]) -> None:
        super().__init__(message)
        self.request_ids = request_ids

    def __reduce__(self) -> tuple[type[OversizeError], tuple[str, tuple[int, ...]]]:
        return OversizeError, (str(self), self.request_ids)


class TraceError(SortedfError, ValueError):
    """A trace or schedule file cannot be read; the message names file and line."""


class OutputError(SortedfError, ValueError):
    """An output file cannot be written; the message names path and reason."""


class CertificateError(SortedfError, ValueError):
    """A certificate proves nothing here: another instance, or broken prices."""


class TooLargeError(SortedfError, ValueError):
    """A method would need more memory than is sensible; the message names another."""


class MissingExtraError(SortedfError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""


class PluginError(SortedfError, RuntimeError):
    """A plug-in cannot be loaded; the message names the entry point and its package."""
