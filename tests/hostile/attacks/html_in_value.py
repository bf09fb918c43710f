# Returns HTML, terminal codes, direction marks and a lone surrogate.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    return "<script>alert(1)</script>\x1b[31m\x1b]0;title\x07\u202e\ud800\x00&lt;"
