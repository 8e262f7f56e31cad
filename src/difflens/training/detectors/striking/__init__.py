"""Single steps that strike a run: what they were, and what they did to the loss."""
