"""A training run while it happens. Start with `monitor`."""
