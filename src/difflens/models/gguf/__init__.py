"""What the GGUF reader is made of: its header and its block types."""
