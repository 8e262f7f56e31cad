"""Many versions of a model, compared: pure functions of snapshots."""
