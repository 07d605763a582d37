"""Learners in the feature space of a kernel: without a limit, and on a budget."""
