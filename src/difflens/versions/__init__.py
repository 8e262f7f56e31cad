"""What versions of a model say when they are held side by side: pure functions of snapshots."""
