"""How right compares with left on each metric, from the best evidence there is."""
