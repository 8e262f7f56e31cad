"""Folders as models: shards, their index, and the files beside the weights."""
