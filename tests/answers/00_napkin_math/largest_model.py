# %% wrong: GiB
# says: That takes a GB for 2³⁰ bytes
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 2**30 / bytes_per_parameter

# %% wrong: 1024³
# says: That takes a GB for 2³⁰ bytes
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 1024**3 / bytes_per_parameter

# %% wrong: one device
# says: That is one device
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: always sharded
# says: Without sharding every device keeps the whole model
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return devices * memory_gb * 1e9 / bytes_per_parameter

# %% wrong: divided among devices when not sharded
# says: Without sharding every device keeps the whole model
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    if sharded:
        return devices * memory_gb * 1e9 / bytes_per_parameter
    return memory_gb * 1e9 / bytes_per_parameter / devices

# %% wrong: billions
# says: Those are billions
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb / bytes_per_parameter

# %% wrong: bytes
# says: Those are the bytes
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 1e9

# %% wrong: multiplied
# says: divide by them
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 1e9 * bytes_per_parameter

# %% wrong: megabytes
# says: that takes it for 10⁶
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 1e6 / bytes_per_parameter

# %% wrong: divided by the devices
# says: More devices hold more
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return memory_gb * 1e9 / bytes_per_parameter / (devices if sharded else 1)

# %% wrong: sharded upside down
# says: That is one device
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (1 if sharded else devices) * memory_gb * 1e9 / bytes_per_parameter

# %% wrong: always sixteen bytes
# says: expected  23500000000.0
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 1e9 / 16

# %% wrong: always sixteen bytes
# says: not always 16
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return (devices if sharded else 1) * memory_gb * 1e9 / 16

# %% right: whole parameters
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    if not sharded:
        devices = 1
    return devices * memory_gb * 10**9 // bytes_per_parameter

# %% right: a truth value as an exponent
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    return memory_gb / bytes_per_parameter * devices**sharded * 1e9

# %% right: calls itself
def largest_model(devices, memory_gb, bytes_per_parameter, sharded=True):
    if sharded:
        return devices * largest_model(1, memory_gb, bytes_per_parameter, False)
    return memory_gb * 1_000_000_000 / bytes_per_parameter

# %% survivor: keeping * memory_gb * 1000000000.0 / bytes_per_parameter → keeping * memory_gb * 1000000000.0 // bytes_per_parameter
# why: it leaves out a fraction of one parameter among billions
