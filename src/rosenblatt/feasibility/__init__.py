"""Solving with perceptrons: points inside cones, linear programs, and proofs that there are none."""
