"""Live feeds: what trainers say, producers, and what a batch says of its rows."""

from .feed import Limits, LiveFeed, Trained
from .producer import Claim, Group, Producer
from .rows import LiveRows, Row

__all__ = ["Claim", "Group", "Limits", "LiveFeed", "LiveRows", "Producer", "Row",
           "Trained"]
