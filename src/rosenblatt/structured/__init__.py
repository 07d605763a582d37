"""Taggers and parsers: a structured example proposes the direction φ(x, gold) − φ(x, guess)."""
