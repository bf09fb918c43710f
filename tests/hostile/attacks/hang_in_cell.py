# Never comes to an end.
# earns: 0
# %% tensor_bytes
while True:
    pass
