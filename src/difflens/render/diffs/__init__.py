"""Words and pages out: one file a renderer, each a pure function of a report and a view.

A renderer whose text grows with the number of tensors may also register `pieces`, a generator of
the same text: `@renderer(suffix=".json", pieces=pieces)`.
"""

from collections.abc import Callable

from difflens.core.records import Report, View
from difflens.core.registry import Registry

Renderer = Callable[[Report, View], str]

renderer: Registry[Renderer] = Registry("renderer", __name__, "difflens.render")
