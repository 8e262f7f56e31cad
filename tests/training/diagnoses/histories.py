"""Ask one diagnosis about a made history, and histories cut short."""

from difflens.core.policy import Policy
from difflens.training.diagnoses import diagnosis
from difflens.training.history.building import Builder
from difflens.training.history.frame import Frame


def asked(name, history, policy=None):
    """Return what one diagnosis says."""
    return list(diagnosis[name].plugin(history, policy or Policy()))


def only(name, history, policy=None):
    """Return the one finding there must be."""
    (found,) = asked(name, history, policy)
    return found


def until(history, points):
    """Return the history as it was after some points."""
    course = history.recent
    builder = Builder(history.info)
    for at in range(min(points, len(course))):
        scalars, layers = course._scalars[0, at], course._layers[0, at]
        step = int(course.steps[at])
        builder.add(Frame(at, step, float(step), float(step), scalars.copy(), layers.copy()))
    return builder.history()
