"""Learning one example at a time."""
