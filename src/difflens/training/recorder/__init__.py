"""What happens to readings while training goes on: written, gathered, diagnosed, reported once.

All of it on one thread beside the loop. Nothing here raises into the loop or makes it wait; what
cannot be kept is counted.
"""
