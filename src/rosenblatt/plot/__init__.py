"""Plots of learners, of training from files, of tags and trees, and of theorems."""

from rosenblatt.plot.learners import boundary, history, learning_curve, losses, mixing, network, passes, regret
from rosenblatt.plot.structures import confusions, tree
from rosenblatt.plot.theory import growth, lengths, proof, smoothing

__all__ = [
    "boundary",
    "confusions",
    "growth",
    "history",
    "learning_curve",
    "lengths",
    "losses",
    "mixing",
    "network",
    "passes",
    "proof",
    "regret",
    "smoothing",
    "tree",
]
