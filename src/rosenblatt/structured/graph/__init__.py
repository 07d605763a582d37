"""Trees found among all trees, by the scores of their arcs."""
