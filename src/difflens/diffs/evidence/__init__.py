"""Files beside the models in, plain records out: one file a kind."""
