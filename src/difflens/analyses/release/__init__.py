"""What is asked of a model before it is released: gates that it passes, factors of its risk."""
