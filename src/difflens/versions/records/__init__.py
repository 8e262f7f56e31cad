"""Records of versions: snapshots, comparisons, A/B tests, regressions."""
