"""Reads ranges of bytes: of files on this machine, in buckets, on web servers and on the hub."""
