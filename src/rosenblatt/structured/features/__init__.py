"""What can be said of an example, as 64-bit keys, and the weights of what has been said."""
