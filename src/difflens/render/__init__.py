"""Words and pages out: one file a renderer, each a pure function of a report and a view."""

from collections.abc import Callable

from ..records import Report, View
from ..registry import Registry

renderer: Registry[Callable[[Report, View], str]] = Registry("renderer", "difflens.render")
