"""Trees built from left to right, action by action."""
