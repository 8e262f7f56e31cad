"""What of a frame is told to other programs."""
