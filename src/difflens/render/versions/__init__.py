"""The layouts of results on versions."""
