"""Programs of this repository: the figures of the tree and its public surface."""
