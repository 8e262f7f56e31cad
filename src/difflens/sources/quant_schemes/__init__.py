"""How quantised weights are stored, one file a scheme: each finds a weight's parts and decodes them."""
