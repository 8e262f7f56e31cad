"""The public face: a diff that can analyse, judge and show itself, in a script or a notebook."""

from __future__ import annotations

from html import escape
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from difflens.core.record import data_frame
from difflens.core.records import Report, View

from . import story
from .diff import Diff
from .fingerprints import story as fingerprints

if TYPE_CHECKING:
    from rich.text import Text

    from difflens.core.findings import Envelope
    from difflens.core.policy import Policy
    from difflens.models.opening import Model

    from .evidence.records import Evidence

_FRAME = '<iframe srcdoc="{}" style="width: 100%; height: 32rem; border: 0"></iframe>'


class ModelDiff(Diff):
    """Two models compared: `diff.changed`, `diff["lm_head.weight"].relative_l2`, `print(diff)`."""

    @classmethod
    def of(cls, diff: Diff) -> ModelDiff:
        """Add to a diff what people do with one; still nothing but headers was read."""
        return cls(
            diff.left,
            diff.right,
            diff.session,
            metadata=diff.metadata,
            described=diff.described,
            state=diff.beside,
        )

    def analyse(
        self, name: str, evidence: Evidence | None = None, policy: Policy | None = None
    ) -> Envelope:
        """Ask one analysis: `difflens list analyses` names them."""
        from .analyses import analyse

        return analyse(name, self, evidence, policy)

    def report(self, *analyses: str) -> Report:
        """Judge it, and put it down as plain data, with the analyses named."""
        return story.report(self, analyses)

    def render(self, renderer: str = "cli", view: View | None = None) -> str:
        """Write it as the command line does: "cli", "json", "full-json", "yaml", "csv", "html"."""
        from difflens.render.diffs import renderer as renderers

        text: str = renderers[renderer].plugin(self.report("change_summary"), view or View())
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists, strings and numbers."""
        return self.report().to_dict()

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each tensor."""
        return data_frame(delta.to_row() for delta in self.deltas)

    def __str__(self) -> str:
        """Show what the command shows."""
        return self.render().rstrip("\n")

    def __repr__(self) -> str:
        """Name both sides and count the pairs; measures nothing."""
        sides = f"{self.left.path} and {self.right.path}"
        return f"<difflens.diff of {sides}, {len(self.pairs):,} pairs>"

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
    exact: bool = False,
) -> ModelDiff:
    """Compare two models: paths, or mappings of names to arrays. Left is before.

    The path of a fingerprint stands for its model: distances are estimates then, unless `exact`
    has the model read where the hashes differ.

    >>> import numpy as np
    >>> found = diff({"w": np.ones(4)}, {"w": np.array([1, 1, 1, 2.0])})
    >>> found["w"].relative_l2
    0.5
    >>> [delta.name for delta in found.changed]
    ['w']
    """
    return ModelDiff.of(
        fingerprints.diff(
            left,
            right,
            match=match,
            epsilon=epsilon,
            path=path,
            ignore=ignore,
            threads=threads,
            exact=exact,
        )
    )


def read_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy (TOML): thresholds by analysis or diagnosis, rules of metrics, gates."""
    from difflens.training.diagnoses import diagnosis
    from difflens.versions.verdicts import SECTION, THRESHOLDS

    from .analyses import analysis
    from .evidence.policy import Known, policy

    known = Known.of((*analysis, *diagnosis)).also(SECTION, THRESHOLDS)
    return policy(fspath(path), known)
