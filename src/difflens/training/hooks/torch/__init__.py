"""The PyTorch hook and its parts."""
