"""A small learning server that loses nothing: examples and labels come in, predictions go out."""
