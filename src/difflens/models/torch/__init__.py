"""What the PyTorch readers share: from pickles to tensors, without making anything."""
