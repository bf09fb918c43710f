# Starts threads for ever.
# earns: 0
# %% tensor_bytes
import threading
import time

while True:
    try:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    except RuntimeError:
        time.sleep(0.01)
