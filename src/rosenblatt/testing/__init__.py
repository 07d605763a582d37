"""What the library holds itself to, for use on your own learners: the naive reference, the laws, and data to draw."""
