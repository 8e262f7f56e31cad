"""Where work runs: today on the threads of this process."""
