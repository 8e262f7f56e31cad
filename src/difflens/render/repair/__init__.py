"""What blame found, laid out."""
