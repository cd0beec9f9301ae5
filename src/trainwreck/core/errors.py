"""The errors that reach a user as one sentence."""

from __future__ import annotations


class TrainwreckError(Exception):
    """A problem of the user's input or request. The message is one clear sentence: what, where, what to do."""

    exit_code = 2


class NothingReadable(TrainwreckError):
    """None of the given paths held anything that could be read."""


class UnknownId(TrainwreckError):
    """An id that the catalogue does not know; the message names the nearest known ones."""
