"""Statistical tests and intervals: numbers in and numbers out, nothing about models or files."""
