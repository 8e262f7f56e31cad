"""The zoo in other frameworks: some of its faults and controls once more in Keras and in JAX."""
