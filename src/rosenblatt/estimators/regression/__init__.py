"""Learners that follow an error rather than a mistake."""
