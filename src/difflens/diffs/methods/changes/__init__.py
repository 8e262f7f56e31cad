"""What kind of change a diff is: energies, tags, and the sentence that tells it."""
