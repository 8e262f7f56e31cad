"""Reads two files with two threads and does nothing with the bytes: what reading alone costs.

Usage: bare_pread.py LEFT RIGHT BUFFER_BYTES
"""

import os
import sys
from threading import Thread


def read_alternate(descriptors: list[int], first: int, step: int, size: int) -> None:
    """Read every second chunk of all files, from chunk `first` on, into one buffer."""
    buffer = [bytearray(size)]
    for descriptor in descriptors:
        position = first * size
        while os.preadv(descriptor, buffer, position):
            position += step * size


if __name__ == "__main__":
    files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:3]]
    threads = [Thread(target=read_alternate, args=(files, i, 2, int(sys.argv[3]))) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
