"""Does the work it is sent, until its input ends."""

import pickle
import struct
import sys

place, answers = sys.stdin.buffer, sys.stdout.buffer
while head := place.read(8):
    data = place.read(*struct.unpack("<Q", head))
    try:
        work, item = pickle.loads(data)  # noqa: S301
        answer = False, work(item)
    except Exception as error:  # noqa: BLE001  whatever it is, the other side raises it
        answer = True, error
    reply = pickle.dumps(answer)
    answers.write(struct.pack("<Q", len(reply)) + reply)
    answers.flush()
