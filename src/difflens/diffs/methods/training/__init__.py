"""What training leaves behind: moves between checkpoints, logs, the state of an optimiser, runs."""
