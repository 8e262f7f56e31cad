"""Two models in, what changed out. Start with `story`."""
