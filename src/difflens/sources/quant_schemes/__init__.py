"""How quantised weights are stored, one file a scheme: each finds the parts and decodes them."""
