"""Prints the spectral figures of every changed matrix of two models: what modeldelta prints too.

Usage: spectral_figures.py LEFT RIGHT
"""

import sys

from difflens.diffs.story import diff
from difflens.measure.spectrum import DeltaSpectrum

if __name__ == "__main__":
    for delta, spectrum in diff(sys.argv[1], sys.argv[2]).measured(DeltaSpectrum):
        ranks = spectrum.effective_rank, spectrum.stable_rank, spectrum.rank_above_noise
        print(delta.name, delta.relative_l2, delta.cosine, *ranks)
