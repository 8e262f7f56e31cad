"""What acts on a diff: patches turn one checkpoint into another, blame finds what broke it."""
