"""What can be wrong with what a run is fed: its inputs, their order, their labels."""
