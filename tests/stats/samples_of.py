"""Published samples that the tests of several methods share."""

# Student (1908), hours of sleep gained: two drugs, the same ten patients.
SLEEP_FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

# Brunner & Munzel (2000): pain scores of two treatments after surgery.
PAIN_FIRST = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1]
PAIN_SECOND = [3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4]

# Efron & Tibshirani (1993): test scores and grades of fifteen law schools.
LSAT = [576, 635, 558, 578, 666, 580, 555, 661, 651, 605, 653, 575, 545, 572, 594]
GPA = [3.39, 3.30, 2.81, 3.03, 3.44, 3.07, 3.00, 3.43, 3.36, 3.13, 3.12, 2.74, 2.76, 2.88, 2.96]
