"""What difflens promises to be fast at, measured against its peers in one run: `make bench`."""
