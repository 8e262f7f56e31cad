"""Task vectors: what two models learned beside their common base, and whether one is a blend."""
