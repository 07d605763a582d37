"""Plots of learners, of training from files, of tags and trees, and of theorems."""

from rosenblatt.plot.learners import boundary, history, learning_curve, losses, mixing, passes, regret
from rosenblatt.plot.networks import network, neuron
from rosenblatt.plot.structures import confusions, tree
from rosenblatt.plot.theory import growth, lengths, proof, smoothing
from rosenblatt.plot.vectors import cone, hull, margin, update

__all__ = [
    "boundary",
    "cone",
    "confusions",
    "growth",
    "history",
    "hull",
    "learning_curve",
    "lengths",
    "losses",
    "margin",
    "mixing",
    "network",
    "neuron",
    "passes",
    "proof",
    "regret",
    "smoothing",
    "tree",
    "update",
]
