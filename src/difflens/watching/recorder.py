"""Keeps readings: a queue that the loop fills, a thread that writes, gathers and diagnoses.

A lock or a bounded queue that blocks was not taken: the loop must not wait for a disk. The queue
is a deque, the thread looks into it five times a second, and what does not fit is counted.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ..history.frame import Frame, no_scalars
from ..runs import Note, RunInfo
from .gathering import Gathering
from .scalars import Names
from .telling import warn

if TYPE_CHECKING:
    from .alarm import Alarm
    from .paper import Paper

MOST_WAITING = 4096  # readings; beyond, they are dropped and counted
MOST_BYTES = 256 << 20  # what waiting readings may take together
_TOGETHER = 64  # readings that are finished in one go
_WRITTEN_TOGETHER = 1 << 20  # bytes of frames
_LOOK = 0.2  # seconds between two looks into the queue
_PATIENCE = 2.0  # seconds that leaving may take


class Recorder:
    """The sink of a hook, and what became of its readings."""

    def __init__(self, paper: Paper | None, info: RunInfo, alarm: Alarm, sinks: list[Any]) -> None:
        """Begin to record; `paper` is None on a rank that writes nothing."""
        self.alarm, self._paper, self._sinks = alarm, paper, sinks
        self._learn(info)
        self._sequence = 0 if paper is None else paper.sequence  # of the next frame
        self._names = Names(info.scalars)
        self._gathering = Gathering()
        self._waiting: deque[Any] = deque()  # readings, and other work in between
        self._most = max(64, min(MOST_WAITING, MOST_BYTES // max(96 * len(info.layers), 1)))
        self._taken = self._done = self.dropped = 0
        self._told = (0, 0)
        self._cost = 0.0
        self._warned: set[str] = set()
        self._wake, self._is_over, self._is_parked = threading.Event(), False, False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._work, name="difflens", daemon=True)
        self._thread.start()

    def take(self, reading: Any) -> None:
        """Take a step of the loop; drop and count it where too many wait."""
        if len(self._waiting) >= self._most:
            self.dropped += 1
            return
        self._taken += 1
        self._waiting.append(reading)
        if len(self._waiting) * 2 > self._most:
            self._wake.set()

    def _put(self, work: Callable[[], object]) -> None:
        self._taken += 1
        self._waiting.append(work)

    def describe(self, info: RunInfo) -> None:
        """Say how the blocks that follow are laid out."""
        self._put(lambda: self._describe(info))

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened."""
        if threading.current_thread() is self._thread:
            self._note(what, text, data)
        else:
            self._put(lambda: self._note(what, text, data))

    def later(self, work: Callable[[], None]) -> None:
        """Do some work on our own thread."""
        self._put(work)

    def fail(self, error: Exception) -> None:
        """Say once that a hook went quiet."""
        text = f"{type(error).__name__}: {error}"
        self.note("quiet", text)
        self._warn("hook", f"the monitor went quiet, training goes on: {text}")

    def refuse(self, scalars: int) -> None:
        """Count scalars that were no numbers."""
        self._names.refused += scalars

    def cost(self) -> float:
        """Give the seconds of processor time that keeping one reading takes, of late."""
        return self._cost

    def _warn(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warn(text)

    def _work(self) -> None:
        import numpy as np

        np.seterr(all="ignore")  # on this thread: gradients that are not finite are data here
        while not self._is_parked and (self._waiting or not self._is_over):
            self._wake.wait(_LOOK)
            self._wake.clear()
            self._drain()
        if not self._is_parked:
            self._finish()

    def _drain(self) -> None:
        while self._waiting and not self._is_parked:
            readings = self._readings()
            if readings:
                self._safely(partial(self._keep_all, readings), len(readings))
            elif self._waiting:
                self._safely(self._waiting.popleft())
        if self._is_parked:
            self.dropped += sum(not callable(each) for each in self._waiting)
        self._tell_losses()

    def _readings(self) -> list[Any]:
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
            self._lose(error)
        self._done = done + count

    def _lose(self, error: Exception) -> None:
        self.dropped += 1
        self._warn("reading", f"a reading was lost: {type(error).__name__}: {error}")

    def _keep_all(self, readings: list[Any]) -> None:
        """Keep readings: made into frames and written some at a time."""
        begun, frames, looks = time.thread_time(), list[Frame](), self.alarm.is_on
        for each, made in zip(readings, self._made(readings), strict=True):
            if made is None:
                continue
            try:
                self._add(frames, each, *made)
            except Exception as error:  # noqa: BLE001  the others are not lost with it
                self._lose(error)
                continue
            if len(frames) * self._frame_bytes > _WRITTEN_TOGETHER:
                self._write(frames)
            if looks and self.alarm.is_due(each.step):
                self._write(frames)
                begun += self._look(each.step)
        self._write(frames)
        spent = (time.thread_time() - begun) / len(readings)
        self._cost += 0.1 * (spent - self._cost)

    def _made(self, readings: list[Any]) -> Iterable[Any]:
        """Finish readings, those that were made by one maker in one go; None for one that fails."""
        maker = readings[0].maker
        if maker is not None and all(each.maker is maker for each in readings):
            try:
                return list(maker.make_all([each.raw for each in readings]))
            except Exception:  # noqa: BLE001, S110  one of them is bad: find out which
                pass
        return map(self._finished, readings)

    def _finished(self, reading: Any) -> Any:
        if self._is_parked:
            self.dropped += 1
            return None
        try:
            return reading.finish() if reading.maker is None else reading.maker.make(reading.raw)
        except Exception as error:  # noqa: BLE001
            self._lose(error)
            return None

    def _add(self, frames: list[Frame], reading: Any, given: Any, layers: Any) -> None:
        """Make a frame behind those not yet written, which are, where a new scalar comes."""
        if not self._places.keys() >= given.keys():
            given, is_new = self._names.take(given)
            if is_new:
                self._write(frames)
                self._describe(msgspec.structs.replace(self.info, scalars=self._names.known))
        if layers.shape != self._shape:
            raise ValueError(f"a block of {layers.shape}, the run has {self._shape}")
        values = self._no_scalars.copy()
        for name, value in given.items():
            values[self._places[name]] = value
        number, times = self._sequence + len(frames), (reading.wall_time, reading.monotonic_time)
        frames.append(Frame(number, reading.step, *times, values, layers))

    def _look(self, step: int) -> float:
        """Ask the diagnoses, and give the seconds that they took.

        They keep to a share of their own, and must not make readings look dear.
        """
        history, begun = self._gathering.history(), time.thread_time()
        if history is not None:
            self.alarm.look(history, step)
        return time.thread_time() - begun

    def _tell_losses(self) -> None:
        """Write down what was lost so far, once it can be written."""
        losses = (self.dropped, self._names.refused)
        if self._paper is None or losses == self._told:
            return
        text = f"{losses[0]} steps and {losses[1]} scalars were not kept"
        if self._note("dropped", text, {"count": losses[0], "scalars": losses[1]}):
            self._told = losses

    def _write(self, waiting: list[Frame]) -> None:
        """Write frames and tell everybody of them; none is left waiting, whatever happens."""
        frames = waiting.copy()
        waiting.clear()
        if not frames:
            return
        self._sequence = frames[-1].sequence + 1
        if self._paper is not None:
            lost = self._paper.append(frames)
            if lost:
                self.dropped += lost
                self._warn("disk", f"{self._paper.trouble}; steps are not kept for now")
        if self.alarm.is_on:
            for frame in frames:
                self._gathering.add(frame, self.info)
        for sink in list(self._sinks):
            try:
                for frame in frames:
                    sink.write(frame, self.info)
            except Exception as error:  # noqa: BLE001  a stranger's tracker may fail in any way
                self._sinks.remove(sink)
                name = type(sink).__name__
                self._warn(name, f"{name} is left out: {type(error).__name__}: {error}")

    def _learn(self, info: RunInfo) -> None:
        """Know how frames are laid out from now on."""
        self.info, self._shape = info, (len(info.fields), len(info.layers))
        self._frame_bytes = 4 * self._shape[0] * self._shape[1]
        self._places = {name: place for place, name in enumerate(info.scalars)}
        self._no_scalars = no_scalars(len(info.scalars))

    def _describe(self, info: RunInfo) -> None:
        self._names.take(dict.fromkeys(info.scalars, 0.0))
        info = msgspec.structs.replace(info, created=self.info.created, scalars=self._names.known)
        self._learn(info)
        if self._paper is not None:
            self._paper.describe(info)

    def _note(self, what: str, text: str, data: dict[str, Any]) -> bool:
        written = self._paper is not None and self._paper.note(what, text, data)
        if self.alarm.is_on:
            self._gathering.note(Note(what, text, self._sequence, time.time(), data))
        return written

    def flush(self, seconds: float = _PATIENCE) -> bool:
        """Wait until all that was handed in so far is kept; is it?"""
        if os.getpid() != self._process or threading.current_thread() is self._thread:
            return False
        wanted, until = self._taken, time.monotonic() + seconds
        while self._done < wanted and self._thread.is_alive() and time.monotonic() < until:
            self._wake.set()
            time.sleep(0.001)
        return self._done >= wanted

    def close(self, seconds: float = _PATIENCE) -> None:
        """Keep what waits, look once more, and end the thread; a stuck disk is not waited for."""
        if os.getpid() != self._process:
            return
        self._is_over = True
        self._wake.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            atexit.register(self.park)

    def park(self, seconds: float = _PATIENCE) -> None:
        """Keep what waits, and begin nothing more: the interpreter ends.

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
        """Is the thread gone, so that it merges and writes no more? A fork cannot know."""
        return os.getpid() == self._process and not self._thread.is_alive()

    def _finish(self) -> None:
        try:
            history = self._gathering.history() if self.alarm.is_on else None
            if history is not None:
                self.alarm.look(history, 0)
        finally:
            for sink in self._sinks:
                try:
                    sink.close()
                except Exception as error:  # noqa: BLE001
                    self._warn("close", f"{type(sink).__name__}: {error}")
            if self._paper is not None:
                self._paper.close()
