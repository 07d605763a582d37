"""A tag for every token: the best path through a lattice."""
