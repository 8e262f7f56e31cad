"""The public face: a diff that can analyse, judge and show itself, in a script or a notebook."""

from __future__ import annotations

from html import escape
from os import PathLike, fspath
from typing import TYPE_CHECKING

from . import pipeline
from .diffs import Diff
from .evidences import Evidence
from .records import Envelope, Policy, Report, View

if TYPE_CHECKING:
    from rich.text import Text

    from .sources.handed import Model

_FRAME = '<iframe srcdoc="{}" style="width: 100%; height: 32rem; border: 0"></iframe>'


class ModelDiff(Diff):
    """Two models compared: `diff.changed`, `diff["lm_head.weight"].relative_l2`, `print(diff)`."""

    def __init__(self, found: Diff) -> None:
        """Take over a diff of the pipeline; still nothing but headers was read."""
        self.__dict__.update(vars(found))

    def analyse(
        self, name: str, evidence: Evidence | None = None, policy: Policy | None = None
    ) -> Envelope:
        """Ask one analysis: `difflens list analyses` names them."""
        from .analyses import analyse

        return analyse(name, self, evidence or Evidence(), policy or Policy())

    def report(self, *analyses: str) -> Report:
        """Judge it, and put it down as plain data, with the analyses named."""
        return pipeline.report(self, [self.analyse(name) for name in analyses])

    def render(self, renderer: str = "cli", view: View | None = None) -> str:
        """Write it as the command line does: "cli", "json", "full-json", "yaml", "csv", "html"."""
        from .render import renderer as renderers

        text: str = renderers[renderer].plugin(self.report("change_summary"), view or View())
        return text

    def __str__(self) -> str:
        """Show what the command shows."""
        return self.render().rstrip("\n")

    def __repr__(self) -> str:
        """Name both sides; measures nothing."""
        return f"<difflens.diff of {self.left.path} and {self.right.path}>"

    def __rich__(self) -> Text:
        """Let rich print it in colour."""
        from rich.text import Text

        return Text.from_ansi(self.render(view=View(color=True)))

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own so that styles do not mix."""
        return _FRAME.format(escape(self.render("html"), quote=True))


def diff(
    left: Model,
    right: Model,
    *,
    match: str = "auto",
    epsilon: float = 0.0,
    path: str | None = None,
    ignore: str | None = None,
    threads: int | None = None,
) -> ModelDiff:
    """Compare two models: paths, or mappings of names to arrays. Left is before.

    >>> import numpy as np
    >>> found = diff({"w": np.ones(4)}, {"w": np.array([1, 1, 1, 2.0])})
    >>> found["w"].relative_l2
    0.5
    >>> [delta.name for delta in found.changed]
    ['w']
    """
    return ModelDiff(
        pipeline.diff(
            left, right, match=match, epsilon=epsilon, path=path, ignore=ignore, threads=threads
        )
    )


def read_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy (TOML): thresholds by analysis or diagnosis, rules of metrics, gates."""
    from .analyses import analysis
    from .diagnoses import diagnosis
    from .evidence.policy import Known, policy
    from .versions.severity import SECTION, THRESHOLDS

    known = Known.of((*analysis, *diagnosis)).also(SECTION, THRESHOLDS)
    return policy(fspath(path), known)
