"""No word of praise or blame in a report that was made from weights alone."""

import re
from functools import cache

import pytest
from diffs.analyses.small import changed, decoder, nudged

from difflens.core.records import Report, View
from difflens.diffs.analyses import analysis
from difflens.diffs.story import diff, report
from difflens.render.diffs import renderer

# Judgements that need an evaluation, a log or a budget; none of these was handed in.
JUDGING = re.compile(
    r"\b(improv(?:ing|ed|es)|degrad(?:ing|ed|es)|worsen(?:ing|ed|s)|converg(?:ed|ing)|diverg(?:ed|ing)"
    r"|healthy|unhealthy|good|bad|better|worse|best|ready|not_ready|safe|unsafe|stable|unstable"
    r"|excellent|poor|optimal|promising|robust|reliable|successful|acceptable|satisfactory|efficient"
    r"|inefficient|superior|inferior|strong|weak|great|fine|perfect|problematic|faster|slower)\b",
    re.IGNORECASE,
)
# Words of a method that judge no model: groups found again (methods 8.22), a statistical term.
TERMS = re.compile(r"no stable clusters|non-inferior")
VIEWS = {"whole": View(), "review": View(review=True)}


@cache
def from_weights_alone() -> Report:
    model = decoder()
    found = diff(model, changed(model, nudged, "mlp"))
    return report(found, [each.name for each in analysis.ours()])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("output", ["cli", "markdown", "html"])
def test_a_report_from_weights_alone_judges_no_quality(output, view):
    text = renderer[output].plugin(from_weights_alone(), VIEWS[view])
    body = re.sub(r"^.*<body>|<script>.*$", "", text, flags=re.DOTALL)

    assert len(body) > 200
    assert JUDGING.findall(TERMS.sub("", body)) == []


@pytest.mark.parametrize("word", ["improving", "Healthy", "ready", "it is better", "trend=stable"])
def test_such_a_word_would_be_noticed(word):
    assert JUDGING.search(f"+ a: {word}, ")


@pytest.mark.parametrize("word", ["safetensors", "deployment_readiness", "flow_health", "bestow"])
def test_names_of_fields_and_formats_are_no_such_words(word):
    assert not JUDGING.search(word)
