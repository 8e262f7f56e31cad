"""Fingerprints: a model in 4 KB per tensor, so that it can be compared without its bytes."""
