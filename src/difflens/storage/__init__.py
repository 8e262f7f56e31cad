"""Reads ranges of bytes, today from local files."""
