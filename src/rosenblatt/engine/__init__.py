"""The loop over examples, and everything it touches: rows, problems, weights, epochs."""
