"""What can go wrong: one class for each status of the C ABI, all of them `batchwright.Error`.

Where Python has an exception of its own for the case, the class derives from it as well: code that
expects a `TimeoutError` or a `KeyError` gets one.
"""

from __future__ import annotations

from typing import ClassVar, Dict, Optional, Type


class Error(Exception):
    """Anything this package raises. `status` is the number of the C ABI, or None for our own."""

    status: ClassVar[Optional[int]] = None
    accepted: int = 0  #: of `Producer.push_many()`: so many sequences were accepted before it

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotFoundError(Error, KeyError):
    """No feed, field or category of this name. The text lists those that are there."""

    status = 1


class CorruptRecordError(Error):
    """The feed stopped: a stored sequence fails verification."""

    status = 2


class StoreUnavailableError(Error):
    """The feed stopped: its dataset cannot be read."""

    status = 3


class InvalidArgumentError(Error, ValueError):
    """Mend the call; the subscription goes on."""

    status = 4


class BadConfigurationError(Error):
    """The daemon's configuration is wrong."""

    status = 5


class AlreadyExistsError(Error):
    """It is there already."""

    status = 6


class SchemaMismatchError(Error, TypeError):
    """The values are of another kind than the fields."""

    status = 7


class UnsupportedVersionError(Error):
    """The other side speaks another version: upgrade one of them."""

    status = 8


class DoesNotFitError(Error):
    """Out of memory, or too large."""

    status = 9


class FingerprintMismatchError(Error):
    """The plan is not the one expected: other data, other settings, or another seed."""

    status = 10


class MalformedMessageError(Error):
    """Bytes from the daemon fail verification."""

    status = 11


class TimedOutError(Error, TimeoutError):
    """Nothing came in time. The text says what was waited for. Call again, or give up."""

    status = 12


class DisconnectedError(Error, ConnectionError):
    """The daemon is gone, or the connection was closed. Connect again."""

    status = 13


class SystemRefusedError(Error, OSError):
    """The operating system refused."""

    status = 14


class InfeasibleError(Error):
    """It cannot be done with these settings."""

    status = 15


class UnsupportedError(Error, NotImplementedError):
    """It is not done this way. The text says how it is."""

    status = 16


class ForkedError(Error, RuntimeError):
    """Used in a forked child what its parent made: connect anew in the child."""

    status = 17


class BusyError(Error):
    """Another thread is in a call on this connection."""

    status = 18


class InternalError(Error):
    """A broken promise of the library's own. Report it."""

    status = 19


class ReleasedError(Error, RuntimeError):
    """The batch was released. Views that were taken before are still good."""


class ClosedError(Error, RuntimeError):
    """The connection, subscription or iterator was ended by this program."""


class LibraryError(Error, ImportError):
    """libbatchwright is not found, or is of another version than this package."""


def _all_of(base: Type[Error]) -> Dict[int, Type[Error]]:
    return {each.status: each for each in base.__subclasses__() if each.status is not None}


BY_STATUS: Dict[int, Type[Error]] = _all_of(Error)


def error_of(status: int, text: str) -> Error:
    """The exception for a status above 0, and what the library said of it."""
    return BY_STATUS.get(status, Error)(text)
