"""Outputs that have parts: tag sequences, trees, and whatever a search can find. An example proposes the direction
φ(x, gold) − φ(x, guess); all else is as everywhere in this library, a margin and a step."""
