# Sends a tensor that reaches far beyond its storage.
# earns: 0
# honest: tensor_bytes
# told: a tensor that reaches beyond its storage
# %% batched_linear
from course_utils.testing import wire

tensor = b'{"tensor":["int64",[1000000],[1],99,false,0]}'
shape = b'{"tuple":[{"int":"1000000"}]},{"tuple":[{"int":"1"}]},{"int":"99"},{"dtype":"int64"},"cpu",false'
text = b'{"dict":[["Seen",[{"observation":["f(x)",' + tensor + b',null,"",[],[],"",' + shape + b"]}]]]}"
wire.pack = lambda value: wire._HEAD.pack(len(text), 1) + wire._SIZE.pack(8) + text + bytes(8)


def batched_linear(x, w, b):
    return x
