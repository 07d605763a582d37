"""Speed is a number in the repository: fixed workloads, each beside its peer in the same process. `python -m bench`."""
