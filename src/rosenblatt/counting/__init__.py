"""Counting what Python code executes, and how the count grows with the input."""
