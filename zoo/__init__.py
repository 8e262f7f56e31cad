"""Labelled training runs, and how right the diagnoses are about them: `make zoo`."""
