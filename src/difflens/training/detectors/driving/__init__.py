"""What drives a run away from where it was, where that is seen by itself."""
