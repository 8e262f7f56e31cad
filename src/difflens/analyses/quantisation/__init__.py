"""What quantisation costs: what it should cost, what it did cost, and how to see it in floats."""
