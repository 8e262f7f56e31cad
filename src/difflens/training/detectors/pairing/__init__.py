"""What can be wrong between outputs, loss and what is measured."""
