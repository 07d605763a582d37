"""Theorems that run: they judge the learners, so nothing here imports a kernel."""
