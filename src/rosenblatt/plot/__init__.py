"""Plots of learners, of training from files, of tags and trees, and of theorems."""

from rosenblatt.plot.functions import losses, steps, subgradient
from rosenblatt.plot.learners import boundary, history, learning_curve, mixing, passes, progress, regret
from rosenblatt.plot.linear_models import confidence, weights
from rosenblatt.plot.networks import network, neuron
from rosenblatt.plot.structures import confusions, tree
from rosenblatt.plot.theory import growth, lengths, proof, smoothing
from rosenblatt.plot.two_classes import cone, margin, separability, separators, soft_margin
from rosenblatt.plot.vectors import hull, intercept, projection, update, update_steps

__all__ = [
    "boundary",
    "cone",
    "confidence",
    "confusions",
    "growth",
    "history",
    "hull",
    "intercept",
    "learning_curve",
    "lengths",
    "losses",
    "margin",
    "mixing",
    "network",
    "neuron",
    "passes",
    "progress",
    "projection",
    "proof",
    "regret",
    "separability",
    "separators",
    "smoothing",
    "soft_margin",
    "steps",
    "subgradient",
    "tree",
    "update",
    "update_steps",
    "weights",
]
