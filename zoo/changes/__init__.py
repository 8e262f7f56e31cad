"""Labelled pairs of models, and how right `change_summary` is about each of them."""
