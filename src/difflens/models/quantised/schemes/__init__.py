"""How quantised weights are stored, one plug-in per scheme: each finds the parts and decodes them.

A scheme registers the endings of the tensor names that may belong to it. It is called for each
such tensor and returns the weight, or None if types or shapes show that the tensor belongs to
another scheme. So the order of the schemes does not matter. Parts that contradict each other raise
`Unfit`.
"""

from collections.abc import Callable

from difflens.core.registry import Registry

from ..parts import DecodedWeight, Parts

Scheme = Callable[[Parts, str], DecodedWeight | None]

scheme: Registry[Scheme] = Registry("quantisation scheme", __name__, "difflens.schemes")
