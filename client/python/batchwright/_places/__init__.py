"""Places of a BatchDataset: in a checkpoint, of a subscription, and of an iteration."""

from .hints import Hints
from .iteration import Batches, Iteration, Now
from .place import Place, place_of, state_of
from .steps import Step, Steps
from .stream import Event, Stream, check_share

__all__ = ["Batches", "Event", "Hints", "Iteration", "Now", "Place", "Step", "Steps", "Stream",
           "check_share", "place_of", "state_of"]
