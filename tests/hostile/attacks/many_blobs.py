# Sends a message of 256 MiB in millions of parts, each of which takes a loop in the judge.
# earns: 0
# honest: tensor_bytes
# told: blobs
# %% batched_linear
import struct

from course_utils.testing import wire

count = (2**28 - 1000) // 11
text = b'{"dict":[["Ran",["",""]]]}'
flood = struct.pack("<II", len(text), count) + struct.pack("<Q", 3) * count + text + bytes(3 * count)
wire.pack = lambda value: flood
