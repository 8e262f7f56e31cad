"""How many evaluations blame takes, and how often it is right: faults planted in small networks."""
