"""Theorems that run: they judge the learners, so nothing here imports a kernel."""

from rosenblatt.theory.separability import Inseparable, Separable, Undecided, separability

__all__ = ["Inseparable", "Separable", "Undecided", "separability"]
