"""What the tensors of a model are: their roles, their places, the numbers of their network."""
