"""Quantised checkpoints: the parts of a weight, replaced by the weight they encode."""
