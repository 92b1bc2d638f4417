"""The processes of a job: each one's share of every global step, and whether they agree."""

from .agreement import CHECKS, Comparison, Told
from .share import Choice, Share, check_pair, resolve

__all__ = ["CHECKS", "Choice", "Comparison", "Share", "Told", "check_pair", "resolve"]
