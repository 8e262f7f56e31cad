"""Bytes in, tensors out: reading model files, and what one model is."""
