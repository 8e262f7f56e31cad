"""What is read of Keras: variables, the optimizer and the forward pass."""
