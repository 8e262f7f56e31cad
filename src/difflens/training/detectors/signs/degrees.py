"""What few, some, most and far mean: one scale of degrees for all diagnoses.

A rule says in words how much it asks for. Its numbers are no finer than these: on the recorded
runs their digits carry nothing, and a number that nobody can tune fits no run by chance. A number
that must be another has a name and a reason of its own beside its rule.
"""

from __future__ import annotations

# Points, looks, layers: how many, or for how long.
FEW, SEVERAL, SHORT, RECENT, LONG, LASTING, ENDURING = 3, 5, 10, 20, 30, 60, 100

# Shares of what something was, or of all there are.
HARDLY, LITTLE, SOME, PART, HALF, MOST, NEARLY, ALMOST = 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97

# Times what something was, or of what is usual.
SLIGHTLY, CLEARLY, TWICE, THRICE, FIVEFOLD, TENFOLD = 1.1, 1.5, 2.0, 3.0, 5.0, 10.0
FAR, HUNDREDFOLD = 30.0, 100.0
