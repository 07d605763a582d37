"""Learners with the interface of scikit-learn, on the engine."""
