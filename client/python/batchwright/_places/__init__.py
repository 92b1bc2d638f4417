"""Places of a BatchDataset: in a checkpoint, of a subscription, and of an iteration."""

from .iteration import Batches, Iteration, Now
from .place import Place, place_of, state_of
from .stream import Event, Stream, check_grant

__all__ = ["Batches", "Event", "Iteration", "Now", "Place", "Stream", "check_grant",
           "place_of", "state_of"]
