"""Whether two models are kin: tests of the hypothesis that they were trained independently."""
