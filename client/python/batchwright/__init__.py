"""Batches from a batchwrightd, without a copy.

    import batchwright

    connection = batchwright.connect("ipc:///run/batchwright/batchwright.sock")
    for batch in connection.feed("train").epoch(0):
        train(batch["features"], batch.lengths)        # NumPy, read-only
        train(batch.torch("features"), torch.from_numpy(batch.lengths))

`batchwright.torch` has a dataset for torch's DataLoader, `batchwright.gpu` the way to a GPU;
`batchwright.DatasetWriter` writes datasets, and `batchwright.features` makes features of sound as
the daemon does, for inference. `python3 -m batchwright` prints the guide.

Needs Python 3.9, NumPy and libbatchwright.so.1; torch is imported only by the parts that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import numpy as _  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise ModuleNotFoundError("NumPy is not installed, and batchwright needs it: install "
                              "python3-numpy (Debian), or `pip install numpy`",
                              name="numpy") from None

from . import _abi
from ._live import Claim, Group, LiveFeed, Producer, Row
from .batch import Batch
from .connection import Connection, ConnectionInfo, Feed, connect
from .errors import (
    AlreadyExistsError, BadConfigurationError, BusyError, ClosedError, CorruptRecordError,
    DisconnectedError, DoesNotFitError, Error, FingerprintMismatchError, ForkedError,
    InfeasibleError, InternalError, InvalidArgumentError, LibraryError, MalformedMessageError,
    NotFoundError, ReleasedError, SchemaMismatchError, StoreUnavailableError, SystemRefusedError,
    TimedOutError, UnsupportedError, UnsupportedVersionError,
)
from .serving import FeedConfig, Server, serve
from .subscription import Subscription
from .tensor import Tensor
from .values import EpochEnd, Field, Grant, Position, UpcomingBatch

__version__ = "0.2.0"

__all__ = [
    "AlreadyExistsError", "BadConfigurationError", "Batch", "BusyError", "Claim", "ClosedError",
    "Connection", "ConnectionInfo", "CorruptRecordError", "DatasetWriter", "DisconnectedError",
    "DoesNotFitError", "EpochEnd", "Error", "Feed", "FeedConfig", "Field", "FingerprintMismatchError",
    "FieldSpec", "ForkedError", "FrontEnd", "Grant", "Group", "InfeasibleError", "InternalError",
    "InvalidArgumentError", "LibraryError", "LiveFeed", "MalformedMessageError", "NotFoundError", "Position", "Producer",
    "ReleasedError", "Row", "SchemaMismatchError", "Server", "StoreUnavailableError", "Subscription",
    "SystemRefusedError",
    "Tensor", "TimedOutError", "UnsupportedError", "UnsupportedVersionError", "UpcomingBatch",
    "connect", "features", "library_version", "serve",
]


def library_version() -> str:
    """The version of the C library that was found."""
    version: bytes = _abi.library_version()
    return version.decode()


if TYPE_CHECKING:  # a module's __getattr__ would have every misspelt name pass
    from .front_end import FrontEnd, features
    from .writer import DatasetWriter, FieldSpec
else:
    def __getattr__(name):
        # These have a library of their own, which readers need not have.
        if name in ("DatasetWriter", "FieldSpec"):
            from . import writer
            return getattr(writer, name)
        if name in ("FrontEnd", "features"):
            from . import front_end
            return getattr(front_end, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
