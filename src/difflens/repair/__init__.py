"""What acts on a diff: patches, small files that turn one checkpoint into another."""
