"""Detectors of what should not be in a model, or in how it was trained: a few of a kind a file."""
