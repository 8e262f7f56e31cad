"""Weights and gradients of one model: how they are spread, what is wrong, how far they moved."""
