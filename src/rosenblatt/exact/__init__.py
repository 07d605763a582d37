"""Arithmetic that does not round, and the certificates that rest on it."""
