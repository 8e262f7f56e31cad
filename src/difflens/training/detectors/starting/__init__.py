"""What is wrong with a network before its first step."""
