"""Linear learners that keep more than weights: a scale, a norm, a matrix, a logarithm."""
