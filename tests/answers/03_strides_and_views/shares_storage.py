# %% wrong: where the first elements lie
# says: Tensor.data_ptr is where a view begins
def shares_storage(a, b):
    return a.data_ptr() == b.data_ptr()

# %% wrong: equal values
# says: in another order
def shares_storage(a, b):
    return torch.equal(a, b)

# %% wrong: the same object
# says: got       False
def shares_storage(a, b):
    return a is b

# %% wrong: equal storages, by value
# says: Equal numbers in two storages
def shares_storage(a, b):
    return bytes(a.untyped_storage()) == bytes(b.untyped_storage())

# %% wrong: storages of equal size
# says: Equal numbers in two storages
def shares_storage(a, b):
    return a.untyped_storage().nbytes() == b.untyped_storage().nbytes()

# %% wrong: forgets empty tensors
# says: A storage of 0 bytes is shared with nobody
def shares_storage(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

# %% wrong: writes and looks
# says: parts of one storage
def shares_storage(a, b):
    before = b.clone()
    a += 1
    changed = not torch.equal(before, b)
    a -= 1
    return changed

# %% wrong: writes the values back in another way and looks, of one dtype
# says: parts of one storage
def shares_storage(a, b):
    old = b.clone()
    a.add_(1)
    changed = bool((old != b).any()) if old.numel() else False
    a.sub_(1)
    return changed

# %% wrong: overlapping memory
# says: parts of one storage
def shares_storage(a, b):
    import numpy

    return bool(numpy.shares_memory(a.numpy(), b.numpy()))

# %% wrong: compares the tensors they are views of
# says: Equal numbers in two storages
def shares_storage(a, b):
    return a._base is b._base

# %% wrong: always says yes
# says: Equal numbers in two storages
def shares_storage(a, b):
    return True

# %% wrong: writes into the storage and looks
# says: arguments changed
def shares_storage(a, b):
    first, second = a.untyped_storage(), b.untyped_storage()
    if first.nbytes() == 0 or second.nbytes() == 0:
        return False
    if first.nbytes() != second.nbytes():
        return False
    old = second[0]
    first[0] = (old + 1) % 256
    return second[0] != old

# %% wrong: a tensor without elements shares nothing
# says: x[:0] has no elements, but it was cut from x
def shares_storage(a, b):
    same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return a.numel() > 0 and b.numel() > 0 and same

# %% wrong: goes back from the first element, which an empty view does not have
# says: x[:0] has no elements, but it was cut from x
def shares_storage(a, b):
    def start(x):
        return x.data_ptr() - x.storage_offset() * x.element_size()

    return start(a) != 0 and start(a) == start(b)

# %% wrong: goes back from the first element, where there is memory
# says: x[:0] has no elements, but it was cut from x
def shares_storage(a, b):
    def start(x):
        return x.data_ptr() - x.storage_offset() * x.element_size()

    return min(a.untyped_storage().nbytes(), b.untyped_storage().nbytes()) > 0 and start(a) == start(b)

# %% wrong: goes back by 4 bytes for each element
# says: x[:0] has no elements, but it was cut from x
def shares_storage(a, b):
    start = a.data_ptr() - 4 * a.storage_offset()
    return start != 0 and start == b.data_ptr() - 4 * b.storage_offset()

# %% wrong: goes back by 4 bytes for each element, and asks the storages of empty views
# says: not every element takes 4 bytes
def shares_storage(a, b):
    def start(x):
        if x.numel() == 0:
            return x.untyped_storage().data_ptr()
        return x.data_ptr() - 4 * x.storage_offset()

    return start(a) != 0 and start(a) == start(b)

# %% right: one Python object for each storage
def shares_storage(a, b):
    return a.untyped_storage() is b.untyped_storage()

# %% right: the storages' own handles
def shares_storage(a, b):
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata

# %% right: goes back from the first element to the start, where there is one
def shares_storage(a, b):
    def start(x):
        if x.numel() == 0:
            return x.untyped_storage().data_ptr()
        return x.data_ptr() - x.storage_offset() * x.element_size()

    return start(a) != 0 and start(a) == start(b)

# %% right: the intervals of addresses
def shares_storage(a, b):
    def interval(x):
        storage = x.untyped_storage()
        return range(storage.data_ptr(), storage.data_ptr() + storage.nbytes())

    return len(interval(a)) > 0 and interval(a) == interval(b)

# %% right: the deprecated spelling
def shares_storage(a, b):
    return a.storage().data_ptr() == b.storage().data_ptr() and len(a.storage()) > 0
