"""The recorder: a queue that the loop fills, and a thread that makes frames, writes and diagnoses.

A lock or a bounded queue that blocks was not taken: the loop must not wait for a disk. The queue
is a deque, the thread looks into it five times a second, sooner where the alarm is due, and what
does not fit is counted.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from difflens.core.kept import now

from ..history.building import LiveHistory
from ..history.frame import Frame, no_scalars, unread_layers
from ..records.runs import Note, RunInfo
from ..sinks import sink as registered_sinks
from .alarm import warn
from .run_file import Names, RunFile

if TYPE_CHECKING:
    from ..hooks import Frames
    from .alarm import Alarm

MOST_WAITING = 4096  # readings; beyond, they are dropped and counted
MOST_BYTES = 256 << 20  # what waiting readings may take together
_TOGETHER = 64  # readings that are finished in one go
_WRITTEN_TOGETHER = 1 << 20  # bytes of frames
_LOOK, _SOON = 0.2, 0.01  # seconds between two looks into the queue, at most and at least
_PATIENCE = 2.0  # seconds that leaving may take


def start_recording(
    folder: Path,
    info: RunInfo,
    frames: Frames,
    alarm: Alarm,
    sinks: Iterable[str],
    *,
    resume: bool,
    overwrite: bool,
    writes: bool = True,
) -> Recorder:
    """Make the run's file and the sinks, and start the recorder that feeds them.

    A run that cannot be made is raised here. A rank that does not write has neither file nor sinks.
    """
    info = msgspec.structs.replace(info, created=now())
    if not writes:
        return Recorder(None, info, frames, alarm, [])
    run_file = RunFile(folder, info, resume=resume, overwrite=overwrite)
    others = [registered_sinks[name].plugin(folder, info) for name in sinks]
    return Recorder(run_file, info, frames, alarm, others)


class Recorder:
    """Takes the readings of a hook, and counts what became of them."""

    def __init__(
        self,
        run_file: RunFile | None,
        info: RunInfo,
        frames: Frames,
        alarm: Alarm,
        sinks: list[Any],
    ) -> None:
        """Begin to record; `run_file` is None on a rank that writes nothing."""
        self.alarm, self._run_file, self._frames, self._sinks = alarm, run_file, frames, sinks
        self._set_layout(info)
        self._sequence = 0 if run_file is None else run_file.sequence  # of the next frame
        self.first_step = 0 if run_file is None else run_file.first_step
        self._names = Names(info.scalars)
        self._live = LiveHistory()
        self._waiting: deque[Any] = deque()  # readings, and other work in between
        self._most = max(64, min(MOST_WAITING, MOST_BYTES // max(96 * len(info.layers), 1)))
        self._queued = self._done = self.dropped = 0
        self._noted_losses = (0, 0)
        self._cost = self._light = 0.0  # seconds that a reading takes, and a step without one
        self.read_steps = 0
        self._warned: set[str] = set()
        self._wake, self._is_over, self._is_parked = threading.Event(), False, False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._work, name="difflens", daemon=True)
        self._thread.start()

    def record(self, reading: Any) -> None:
        """Queue a step of the loop; if too many wait, drop and count it."""
        if len(self._waiting) >= self._most:
            self.dropped += 1
            return
        self._queued += 1
        self._waiting.append(reading)
        if len(self._waiting) * 2 > self._most:
            self._wake.set()

    def _queue(self, work: Callable[[], object]) -> None:
        self._queued += 1
        self._waiting.append(work)

    def describe(self, info: RunInfo) -> None:
        """Say how the blocks that follow are laid out."""
        self._queue(lambda: self._describe(info))

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened."""
        if threading.current_thread() is self._thread:
            self._note(what, text, data)
        else:
            self._queue(lambda: self._note(what, text, data))

    def later(self, work: Callable[[], None]) -> None:
        """Do some work on the recorder's thread."""
        self._queue(work)

    def fail(self, error: Exception) -> None:
        """Warn once that a hook stopped."""
        text = f"{type(error).__name__}: {error}"
        self.note("quiet", text)
        self._warn("hook", f"the monitor went quiet, training goes on: {text}")

    def refuse(self, name: str, value: object) -> None:
        """Count a scalar that is not a number; warn once for the loss, and once for others."""
        self._names.refused += 1
        if value is None:  # what a loop hands in where it measured nothing
            return
        text = f"{name} is a {type(value).__name__}, not one number: it is not recorded"
        self._warn("loss" if name == "loss" else "scalar", f"{text}; give step() one number")

    def cost(self) -> float:
        """Return the seconds of processor time that recording one reading took lately."""
        return self._cost

    def hurry(self) -> None:
        """Look at what waits, and ask the diagnoses, as soon as possible."""
        self._queue(self.alarm.hurry)
        self._wake.set()

    def _warn(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warn(text)

    def _work(self) -> None:
        import numpy as np

        np.seterr(all="ignore")  # on this thread: gradients that are not finite are data here
        while not self._is_parked and (self._waiting or not self._is_over):
            self._wake.wait(self._patience())
            self._wake.clear()
            self._drain()
        if not self._is_parked:
            self._end()

    def _patience(self) -> float:
        """Choose how long to leave the queue alone: not beyond the alarm's next look."""
        if not self.alarm.is_by_time:
            return _LOOK
        return min(max(self.alarm.seconds_left, _SOON), _LOOK)

    def _drain(self) -> None:
        while self._waiting and not self._is_parked:
            readings = self._next_readings()
            if readings:
                self._safely(partial(self._record_all, readings), len(readings))
            elif self._waiting:
                self._safely(self._waiting.popleft())
        if self._is_parked:
            self.dropped += sum(not callable(each) for each in self._waiting)
        self._note_losses()

    def _next_readings(self) -> list[Any]:
        """Take the readings that wait in front, some at a time, up to other work."""
        found: list[Any] = []
        while self._waiting and not callable(self._waiting[0]) and len(found) < _TOGETHER:
            found.append(self._waiting.popleft())
        return found

    def _safely(self, work: Callable[[], object], count: int = 1) -> None:
        done = self._done
        try:
            work()
        except Exception as error:  # noqa: BLE001  one bad reading must not end the recording
            self._count_lost(error)
        self._done = done + count

    def _count_lost(self, error: Exception) -> None:
        self.dropped += 1
        self._warn("reading", f"a reading was lost: {type(error).__name__}: {error}")

    def _record_all(self, readings: list[Any]) -> None:
        """Make frames of readings, and write them some at a time."""
        begun, frames, looks = time.thread_time(), list[Frame](), self.alarm.is_on
        read = self.read_steps
        for each, finished in zip(readings, self._finish_all(readings), strict=True):
            if finished is None:
                continue
            try:
                self._add_frame(frames, each, *finished)
            except Exception as error:  # noqa: BLE001  the others are not lost with it
                self._count_lost(error)
                continue
            if len(frames) * self._frame_bytes > _WRITTEN_TOGETHER:
                self._write(frames)
            # A look that goes by time waits for the latest step, and is not late by what waits.
            late = self.alarm.is_by_time and (each is not readings[-1] or bool(self._waiting))
            if looks and not late and self.alarm.is_due(each.step):
                self._write(frames)
                begun += self._look(each.step)
        self._write(frames)
        self._learn_cost(time.thread_time() - begun, len(readings), self.read_steps - read)

    def _learn_cost(self, spent: float, steps: int, read: int) -> None:
        """Learn what a reading costs, and what a step costs that was not read."""
        if read:
            light = min(self._light, spent / steps)
            dear = (spent - (steps - read) * light) / read
            self._cost += 0.1 * (dear - self._cost)
        else:
            self._light += 0.1 * (spent / steps - self._light)

    def _finish_all(self, readings: list[Any]) -> Iterable[Any]:
        """Finish readings together if that is possible, or else one by one; None for a bad one."""
        with suppress(Exception):  # one of them is bad: find out which
            finished = self._frames.make_all(readings)
            if finished is not None:
                return finished
        return map(self._finish_one, readings)

    def _finish_one(self, reading: Any) -> Any:
        if self._is_parked:
            self.dropped += 1
            return None
        try:
            return self._frames.make(reading)
        except Exception as error:  # noqa: BLE001
            self._count_lost(error)
            return None

    def _add_frame(self, frames: list[Frame], reading: Any, scalars: Any, layers: Any) -> None:
        """Add a frame to those not yet written; these are written first if a new scalar comes."""
        if not self._places.keys() >= scalars.keys():
            scalars, is_new = self._names.place(scalars)
            if is_new:
                self._write(frames)
                self._describe(msgspec.structs.replace(self.info, scalars=self._names.known))
        is_read = layers is not None
        if layers is None:
            layers = unread_layers(*self._shape)
        if layers.shape != self._shape:
            raise ValueError(f"a block of {layers.shape}, the run has {self._shape}")
        values = self._no_scalars.copy()
        for name, value in scalars.items():
            values[self._places[name]] = value
        number, times = self._sequence + len(frames), (reading.wall_time, reading.monotonic_time)
        frames.append(Frame(number, reading.step, *times, values, layers, is_read))
        self.read_steps += is_read

    def _look(self, step: int) -> float:
        """Ask the diagnoses; return the seconds that they took.

        They keep to a share of their own, and must not make readings look dear.
        """
        history, begun = self._live.history(), time.thread_time()
        if history is not None:
            self.alarm.look(history, step)
        return time.thread_time() - begun

    def _note_losses(self) -> None:
        """Note in the run how much was lost so far, once it can be written."""
        losses = (self.dropped, self._names.refused)
        if self._run_file is None or losses == self._noted_losses:
            return
        text = f"{losses[0]} steps and {losses[1]} scalars were not kept"
        if self._note("dropped", text, {"count": losses[0], "scalars": losses[1]}):
            self._noted_losses = losses

    def _write(self, waiting: list[Frame]) -> None:
        """Write frames, and pass them to the history and the sinks; none is left waiting."""
        frames = waiting.copy()
        waiting.clear()
        if not frames:
            return
        self._sequence = frames[-1].sequence + 1
        if self._run_file is not None:
            lost = self._run_file.append(frames)
            if lost:
                self.dropped += lost
                self._warn("disk", f"{self._run_file.trouble}; steps are not kept for now")
        if self.alarm.is_on:
            for frame in frames:
                self._live.add(frame, self.info)
        for sink in list(self._sinks):
            try:
                for frame in frames:
                    sink.write(frame, self.info)
            except Exception as error:  # noqa: BLE001  a stranger's tracker may fail in any way
                self._sinks.remove(sink)
                name = type(sink).__name__
                self._warn(name, f"{name} is left out: {type(error).__name__}: {error}")

    def _set_layout(self, info: RunInfo) -> None:
        """Lay frames out like this from now on."""
        self.info, self._shape = info, (len(info.fields), len(info.layers))
        self._frame_bytes = 4 * self._shape[0] * self._shape[1]
        self._places = {name: place for place, name in enumerate(info.scalars)}
        self._no_scalars = no_scalars(len(info.scalars))

    def _describe(self, info: RunInfo) -> None:
        self._names.place(dict.fromkeys(info.scalars, 0.0))
        info = msgspec.structs.replace(info, created=self.info.created, scalars=self._names.known)
        self._set_layout(info)
        if self._run_file is not None:
            self._run_file.describe(info)

    def _note(self, what: str, text: str, data: dict[str, Any]) -> bool:
        written = self._run_file is not None and self._run_file.note(what, text, data)
        if self.alarm.is_on:
            self._live.note(Note(what, text, self._sequence, time.time(), data))
        return written

    def flush(self, seconds: float = _PATIENCE) -> bool:
        """Wait until all that was queued so far is written; return whether it is."""
        if os.getpid() != self._process or threading.current_thread() is self._thread:
            return False
        wanted, until = self._queued, time.monotonic() + seconds
        while self._done < wanted and self._thread.is_alive() and time.monotonic() < until:
            self._wake.set()
            time.sleep(0.001)
        return self._done >= wanted

    def close(self, seconds: float = _PATIENCE) -> None:
        """Write what waits, look once more, and end the thread; do not wait for a stuck disk."""
        if os.getpid() != self._process:
            return
        self._is_over = True
        self._wake.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            atexit.register(self.park)

    def park(self, seconds: float = _PATIENCE) -> None:
        """Write what waits, and begin nothing more: the interpreter ends.

        A thread that is in torch's code by then aborts the process when it comes back from there:
        a part of the time is for what is under way.
        """
        if os.getpid() != self._process:
            return
        if not self._is_over:  # or else closing has waited for it already
            self.flush(0.75 * seconds)
        self._is_parked = True
        self._wake.set()
        self._thread.join(0.25 * seconds)

    @property
    def has_ended(self) -> bool:
        """Has the thread ended, so that it merges and writes no more? A fork cannot know."""
        return os.getpid() == self._process and not self._thread.is_alive()

    def _end(self) -> None:
        """Look a last time, then close sinks and file."""
        try:
            history = self._live.history() if self.alarm.is_on else None
            if history is not None:
                self.alarm.look(history, 0)
        finally:
            for sink in self._sinks:
                try:
                    sink.close()
                except Exception as error:  # noqa: BLE001
                    self._warn("close", f"{type(sink).__name__}: {error}")
            if self._run_file is not None:
                self._run_file.close()
