"""What every product uses: errors, records, the registry, contracts, dtypes, text."""
