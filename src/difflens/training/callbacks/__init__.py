"""The monitor where somebody else's trainer has the loop: one file per framework."""
