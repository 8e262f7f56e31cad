"""What a network keeps from step to step of a sequence, and what it forgets."""
