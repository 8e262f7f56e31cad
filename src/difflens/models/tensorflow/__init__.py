"""What the TensorFlow readers share: graphs, checkpoint paths, slices and types."""
