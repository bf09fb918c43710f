# %% wrong: as noted
# says: Two weeks have fourteen days
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 7

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e9 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return 8 * memory_gb * 1024**3 / bytes_per_parameter

# %% wrong: giga for tera
# says: That takes TFLOP/s for 10⁹ FLOP/s
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e9 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: both mistakes of the card
# says: Two mistakes are still there
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return 8 * memory_gb * 1024**3 / bytes_per_parameter

# %% wrong: GiB
# says: a GB is still 1024³ bytes there
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1024**3 / bytes_per_parameter

# %% wrong: eight cards
# says: that is eight cards
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return 8 * memory_gb * 1e9 / bytes_per_parameter

# %% wrong: peta for tera
# says: That takes TFLOP/s for 10¹⁵ FLOP/s
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e15 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e15 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: FLOP/s for TFLOP/s
# says: The peak comes in TFLOP/s
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: no MFU
# says: The MFU is missing
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: divides by the MFU
# says: multiply by it
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 / mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: an hour of sixty seconds
# says: 24 hours of 60 minutes of 60 seconds
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1e12 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: one device
# says: That is one device; they all work
def two_weeks(devices, peak_tflops):
    return peak_tflops * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: the numbers themselves
# says: expected  3.6288e+20
def two_weeks(devices, peak_tflops):
    return 9.5751936e21

def one_day(devices, peak_tflops, mfu):
    return 4.37723136e22

def on_one_card(memory_gb, bytes_per_parameter):
    return 5e9

# %% wrong: halves the peak, as if it were the sparse one
# says: the peak is the dense one
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops / 2 * 1e12 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops / 2 * 1e12 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% wrong: a tera of 1024⁴
# says: Tera is 10¹²
def two_weeks(devices, peak_tflops):
    return devices * peak_tflops * 1024**4 * 60 * 60 * 24 * 14

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1024**4 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb * 1e9 / bytes_per_parameter

# %% right: one function calls the other
def two_weeks(devices, peak_tflops):
    return 14 * one_day(devices, peak_tflops, mfu=1)

def one_day(devices, peak_tflops, mfu):
    return devices * peak_tflops * 1e12 * mfu * 86_400

def on_one_card(memory_gb, bytes_per_parameter):
    return 10**9 * memory_gb / bytes_per_parameter

# %% right: the notes' functions, mended from outside
def two_weeks(devices, peak_tflops):
    one_week = devices * peak_tflops * 1e12 * 60 * 60 * 24 * 7
    return 2 * one_week

def one_day(devices, peak_tflops, mfu):
    return 1000 * devices * peak_tflops * 1e9 * mfu * 60 * 60 * 24

def on_one_card(memory_gb, bytes_per_parameter):
    return 8 * memory_gb * 1024**3 / bytes_per_parameter / 8 * 1000**3 / 1024**3

# %% right: hour by hour
def two_weeks(devices, peak_tflops):
    return sum(devices * peak_tflops * 3.6e15 for hour in range(14 * 24))

def one_day(devices, peak_tflops, mfu):
    return two_weeks(devices, peak_tflops * mfu) / 14

def on_one_card(memory_gb, bytes_per_parameter):
    return memory_gb / bytes_per_parameter * 1e9

# %% survivor: memory_gb * 1000000000.0 / bytes_per_parameter → memory_gb * 1000000000.0 // bytes_per_parameter
# why: it leaves out a fraction of one parameter among billions
