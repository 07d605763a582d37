"""Learning one example at a time: streams, how to judge them, and what to take home from one."""

from rosenblatt.online.conversion import OnlineToBatch
from rosenblatt.online.progressive import progressive

__all__ = ["OnlineToBatch", "progressive"]
