"""Attention heads: where their matrices lie in a model, and what each head's circuits are."""
