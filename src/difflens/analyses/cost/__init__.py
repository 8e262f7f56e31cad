"""What a model costs: bytes it takes, bytes and operations a forward pass needs."""
