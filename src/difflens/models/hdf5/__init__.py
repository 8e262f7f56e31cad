"""HDF5, read in a process of its own: the client here, the child there."""
