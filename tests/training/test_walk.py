"""The walk of a training step is what really happens: every hop is called."""

import sys
import threading

import pytest
from contracts.plugins import ROOT
from contracts.test_walks import SOURCE, hops
from training.hooks.loops import mlp, trained


def test_every_hop_of_the_walk_is_called(tmp_path):
    pytest.importorskip("torch")
    called = set()

    def note(frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            file = frame.f_code.co_filename.removeprefix(f"{SOURCE}/")
            called.add((file, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        trained(mlp(), tmp_path / "run", steps=3, every="auto", diagnose_every=2)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

    walk = hops(ROOT / "docs" / "walks" / "training.md")
    assert [hop for hop in walk if hop[1:] not in called] == []
