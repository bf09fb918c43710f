# Keeps in folders and in the arguments' memory what it may not keep in its own.
# earns: 0
# told: of memory
# %% tensor_bytes
import gc
import time

for folder in ("/tmp", "/dev/shm"):
    for number in range(2):
        with open(f"{folder}/{number}", "wb") as file:
            file.write(b"x" * 31 * 2**20)
for shared in [each for each in gc.get_objects() if type(each) is memoryview and len(each) == 2**28]:
    for place in range(0, len(shared), 2**20):
        shared[place : place + 2**20] = b"x" * 2**20
held = bytearray(700 * 2**20)
for place in range(0, len(held), 4096):
    held[place] = 1
time.sleep(1000)
