"""A model as one file that holds numbers and text, never code."""
