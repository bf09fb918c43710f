# %% wrong: reshape alone
# says: That only reshapes
def patchify(images, size):
    b, c, height, width = images.shape
    return images.reshape(b, -1, size * size * c)

def unpatchify(patches, size, height):
    b = patches.shape[0]
    c = patches.shape[2] // size**2
    return patches.reshape(b, c, height, -1)

# %% wrong: column after column
# says: The patches come column after column
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (x y) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (x y) (p q c) -> b c (y p) (x q)", p=size, q=size, y=height // size)

# %% wrong: channels first
# says: the channels come first
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (c p q)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (c p q) -> b c (y p) (x q)", p=size, q=size, y=height // size)

# %% wrong: unfold, whose channels come first
# says: the channels come first
def patchify(images, size):
    return torch.nn.functional.unfold(images, size, stride=size).mT

def unpatchify(patches, size, height):
    width = patches.shape[1] * size**2 // height
    return torch.nn.functional.fold(patches.mT, (height, width), size, stride=size)

# %% wrong: pixels column after column
# says: the pixels come column after column
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (q p c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (q p c) -> b c (y p) (x q)", p=size, q=size, y=height // size)

# %% wrong: a grid of patches
# says: The patches are one dimension
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b y x (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b y x (p q c) -> b c (y p) (x q)", p=size, q=size)

# %% wrong: pixels dealt out
# says: A patch is a run of neighbours
def patchify(images, size):
    return rearrange(images, "b c (p y) (q x) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (p y) (q x)", p=size, q=size, y=height // size)

# %% wrong: height counted in patches
# says: height is given in pixels
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, y=height)

# %% wrong: square images only
# says: height is given in pixels
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    side = int(patches.shape[1] ** 0.5)
    return rearrange(patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, y=side)

# %% wrong: back by reshape alone
# says: That only reshapes
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    b = patches.shape[0]
    c = patches.shape[2] // size**2
    return patches.reshape(b, c, height, -1)

# %% wrong: height and width exchanged
# says: Height and width are exchanged
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (x q) (y p)", p=size, q=size, y=height // size)

# %% wrong: one channel only
# says: elements differ
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    c = d // size**2
    out = patches.reshape(b, height // size, -1, c, size, size)
    return out.permute(0, 3, 1, 4, 2, 5).reshape(b, c, height, -1)

# %% right: the old way
def patchify(images, size):
    b, c, height, width = images.shape
    rows, columns = height // size, width // size
    x = images.reshape(b, c, rows, size, columns, size)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(b, rows * columns, size * size * c)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    rows, c = height // size, d // size**2
    columns = n // rows
    x = patches.reshape(b, rows, columns, size, size, c)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(b, c, height, columns * size)

# %% right: unfold along both sides
def patchify(images, size):
    x = images.unfold(2, size, size).unfold(3, size, size)  # b c y x p q
    return x.movedim(1, -1).flatten(3).flatten(1, 2)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    width = n * size**2 // height
    x = patches.unflatten(2, (size * size, -1)).transpose(2, 3).flatten(2)
    return torch.nn.functional.fold(x.mT.contiguous(), (height, width), size, stride=size)

# %% right: patch by patch
def patchify(images, size):
    b, c, height, width = images.shape
    found = []
    for y in range(0, height, size):
        for x in range(0, width, size):
            patch = images[:, :, y : y + size, x : x + size]
            found.append(patch.permute(0, 2, 3, 1).reshape(b, -1))
    return torch.stack(found, dim=1)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    c, rows = d // size**2, height // size
    width = n // rows * size
    images = torch.empty(b, c, height, width, dtype=patches.dtype)
    for i in range(n):
        y, x = i // (width // size) * size, i % (width // size) * size
        images[:, :, y : y + size, x : x + size] = patches[:, i].reshape(b, size, size, c).permute(0, 3, 1, 2)
    return images
