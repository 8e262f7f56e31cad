"""Finds the smallest change between two models that breaks a check."""
