# Replaces itself by a shell.
# earns: 0
# %% tensor_bytes
import os

os.execv("/bin/sh", ["/bin/sh", "-c", "while :; do sleep 1; done"])
