"""What vectors stand for: rows of embeddings and classifiers, and layers by their matrices."""
