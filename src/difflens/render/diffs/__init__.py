"""Words and pages out: one file a renderer, each a pure function of a report and a view.

A renderer whose text grows with the number of tensors may also register `pieces`, a generator of
the same text: `@renderer(suffix=".json", pieces=pieces)`.

A renderer that needs no row twice may register a `follower`, a class that takes rows as they are
measured: `follower(view, pairs)` makes one, `add(row)` hands it the next row, and `text(report)`
has it write the same text of a report that then need not hold the rows.
"""

from collections.abc import Callable

from difflens.core.records import Report, View
from difflens.core.registry import Registry

Renderer = Callable[[Report, View], str]

renderer: Registry[Renderer] = Registry("renderer", __name__, "difflens.render")
