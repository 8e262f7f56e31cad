"""Tests and intervals: one file a method, pure maths, no records."""
