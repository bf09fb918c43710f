# Takes memory until there is none.
# earns: 0
# %% tensor_bytes
hold = []
while True:
    try:
        hold.append(bytearray(2**26))
    except MemoryError:
        pass
