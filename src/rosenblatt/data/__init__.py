"""Files become sentences and rows, and back."""
