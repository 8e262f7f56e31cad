"""The process in which HDF5's C library runs: it receives bytes of one file, and opens nothing.

    it is told   length, JSON             {"do": "list"} or {"do": "read", "index", "start", "stop"}
    it says      "r", offset, length      it needs these bytes of the file, and is handed them
                 "j", length, 0, JSON     datasets, what went wrong, or that it is still at work
                 "d", length, 0, bytes    of a tensor

It imports nothing of ours but this folder, so that it starts fast. Limits on memory, time and files
are set before HDF5 sees a byte.
"""
