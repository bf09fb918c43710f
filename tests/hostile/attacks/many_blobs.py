# Sends a message in millions of parts, each of which takes the judge time and memory.
# earns: 0
# honest: tensor_bytes
# told: blobs
# %% batched_linear
import struct

from course_utils.testing import wire

count = 3_000_000
text = b'{"dict":[["Ran",["",""]]]}'
flood = struct.pack("<II", len(text), count) + struct.pack("<Q", 3) * count + text + bytes(3 * count)
wire.pack = lambda value: flood
