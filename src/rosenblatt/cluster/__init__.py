"""One learner on many machines: iterative parameter mixing on a Dask cluster."""
