"""The contracts of plug-ins as checks, for our own and for those of other packages.

    from difflens.testing import check_source

    def test_tinyfmt_keeps_the_contract():
        check_source(tinyfmt, sample)

Each check runs the laws of its kind and raises `AssertionError` with a sentence at the first one
that is broken. It needs no test framework.
"""

from .analyses import LAWS as ANALYSIS_LAWS
from .analyses import check_analysis
from .diagnoses import LAWS as DIAGNOSIS_LAWS
from .diagnoses import check_diagnosis
from .models import Encoded, write_safetensors
from .renderers import LAWS as RENDERER_LAWS
from .renderers import check_renderer
from .sources import LAWS as SOURCE_LAWS
from .sources import Sample, check_source

__all__ = [
    "ANALYSIS_LAWS",
    "DIAGNOSIS_LAWS",
    "RENDERER_LAWS",
    "SOURCE_LAWS",
    "Encoded",
    "Sample",
    "check_analysis",
    "check_diagnosis",
    "check_renderer",
    "check_source",
    "write_safetensors",
]
