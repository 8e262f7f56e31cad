"""What several diagnoses measure alike: the course of the loss, ratios of layers, jumps."""
