# Raises an exception whose text cannot be made.
# earns: 0
# %% tensor_bytes
class Bomb(BaseException):
    def __str__(self):
        raise Bomb

    __repr__ = __str__


def tensor_bytes(x):
    raise Bomb
