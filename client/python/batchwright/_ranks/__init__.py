"""The processes of a job: each one's share of every global step, and whether they agree."""

from .agreement import CHECKS, Told, agree, is_checked
from .share import Choice, Share, check_pair, resolve

__all__ = ["CHECKS", "Choice", "Share", "Told", "agree", "check_pair", "is_checked", "resolve"]
