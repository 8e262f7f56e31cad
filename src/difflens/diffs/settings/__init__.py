"""What lies beside the weights and decides what the model computes: its config, its tokenizer."""
