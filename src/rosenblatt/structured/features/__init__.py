"""Features of words and sentences as 64-bit keys, and tables of their weights."""
