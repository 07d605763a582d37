"""Every picture the library draws: of learners, and of theorems."""

from rosenblatt.plot.learners import boundary, history, losses, network, regret
from rosenblatt.plot.theory import growth, lengths, proof, smoothing

__all__ = ["boundary", "growth", "history", "lengths", "losses", "network", "proof", "regret", "smoothing"]
