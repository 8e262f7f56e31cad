"""The parts of a model: the roles and places of its tensors, and the sizes of its network."""
