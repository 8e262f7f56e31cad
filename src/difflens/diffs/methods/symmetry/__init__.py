"""Units of a network that may change places without changing what it computes."""
