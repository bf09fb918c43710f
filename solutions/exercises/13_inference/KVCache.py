import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import causal_biases
from autograder.authoring.strategies import any_of

exercise = Exercise("Where in the cache do the new tokens go, and which tokens does each of them attend to?")


def makes(student, batch, kv_heads, capacity, size, dtype, device):
    """What a new cache has. dtype = None and device = None: the defaults."""
    chosen = [each for each in (dtype, device) if each is not None]
    cache = student.KVCache(batch, kv_heads, capacity, size, *chosen)
    both = cache.keys, cache.values
    for number, x in enumerate(both):
        x.fill_(number)
    return {
        "shapes of keys and values": [list(x.shape) for x in both],
        "dtypes": [str(x.dtype) for x in both],
        "devices": [x.device.type for x in both],
        "length": cache.length,
        "two tensors, not one": device == "meta" or not both[0].any(),  # they may be views of one allocation
    }


def run(student, batch, heads, kv_heads, size, capacity, counts, scale=1.0, seed=0, alike=False, device="cpu", forget=0):
    """Calls of attend with so many new tokens each: results, errors, and what the cache has afterwards.

    alike: all key-value heads have the same keys and values. forget: after the calls, `length` is lowered by so much,
    and one more token comes.
    """
    import contextlib

    import torch

    generator = torch.Generator().manual_seed(seed)

    def vectors(n, t):
        made = scale * torch.randn(batch, n, t, size, generator=generator, dtype=torch.float64)
        made = made.mT.contiguous().mT if seed % 4 == 1 else made  # in the order of a product that was transposed
        made = made.transpose(1, 2).contiguous().transpose(1, 2) if seed % 4 == 2 else made  # of heads that were split
        return made.to(device)

    cache, other = (student.KVCache(batch, kv_heads, capacity, size, torch.float64, device) for _ in range(2))
    keys, values = cache.keys, cache.values
    homes = keys.data_ptr(), values.data_ptr()
    results, refused, lengths, same = [], [], [], True
    for number, t in enumerate(counts, 1):
        q, k, v = vectors(heads, t), vectors(kv_heads, t), vectors(kv_heads, t)
        if alike:
            k, v = (x[:, :1].repeat(1, kv_heads, 1, 1) for x in (k, v))
        before = [x.clone() for x in (q, k, v)]
        try:
            with torch.no_grad():
                results.append(cache.attend(q, k, v).clone())
        except ValueError:
            refused.append(number)
        same = same and (device == "meta" or all(map(torch.equal, before, (q, k, v))))
        lengths.append(int(cache.length))
        q.zero_(), k.zero_(), v.zero_()  # the caller may use this memory again
        with contextlib.suppress(ValueError), torch.no_grad():
            other.attend(q, k, v)  # the cache of another layer
    if forget:
        cache.length -= forget
        cache.keys[:, :, cache.length :] = cache.values[:, :, cache.length :] = torch.nan  # whatever it was
        with torch.no_grad():
            results.append(cache.attend(vectors(heads, 1), vectors(kv_heads, 1), vectors(kv_heads, 1)).clone())
        lengths.append(int(cache.length))
    end = lengths[-1] if lengths else 0
    return {
        "results": results,
        "calls that raise a ValueError": refused,
        "length after each call": lengths,
        "keys stored": cache.keys[:, :, :end].clone(),
        "values stored": cache.values[:, :, :end].clone(),
        "keys and values are still the constructor's tensors": (
            [list(x.shape) for x in (cache.keys, cache.values)] == [[batch, kv_heads, capacity, size]] * 2
            and homes == (cache.keys.data_ptr(), cache.values.data_ptr())
        ),
        "q, k and v are unchanged": same,
    }


def shares(student, heads, kv_heads, counts, seed=0):
    """Which query heads' results change with the keys, or with the values, of each key-value head."""
    import torch

    def results(changed=None, which=None):
        generator = torch.Generator().manual_seed(seed)
        cache = student.KVCache(1, kv_heads, sum(counts), 3, torch.float64, "cpu")
        found = []
        for t in counts:
            q, k, v = (torch.randn(1, n, t, 3, generator=generator, dtype=torch.float64) for n in (heads, kv_heads, kv_heads))
            if changed is not None:
                (k if which == "keys" else v)[:, changed] *= -2
            with torch.no_grad():
                found.append(cache.attend(q, k, v).clone())
        return torch.cat(found, dim=2)

    base = results()
    return {
        f"query heads that use the {which} of key-value head {j}": [
            i for i, gap in enumerate((results(j, which) - base).abs().amax(dim=(0, 2, 3)).tolist()) if gap > 1e-7
        ]
        for j in range(kv_heads)
        for which in ("keys", "values")
    }


def allocates(student, batch, heads, kv_heads, size, stored, new, seed=0, room=0, dtype="float32"):
    """What a call on a long cache returns, and the largest tensor that it makes, relative to the cache."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    made = [0]

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            given = {x.untyped_storage()._cdata for x in args if isinstance(x, torch.Tensor)}
            for x in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(x, torch.Tensor) and x.untyped_storage()._cdata not in given:
                    made.append(x.untyped_storage().nbytes())
            return result

    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    cache = student.KVCache(batch, kv_heads, stored + new + room, size, kind, "cpu")
    whole = cache.keys.nbytes + cache.values.nbytes
    first, last = (
        [torch.randn(batch, n, t, size, generator=generator).to(kind) for n in (heads, 1, 1)] for t in (stored, new)
    )
    first, last = ([q, k.repeat(1, kv_heads, 1, 1), v.repeat(1, kv_heads, 1, 1)] for q, k, v in (first, last))
    with torch.no_grad():
        cache.attend(*first)
        with Watch(), causal_biases():
            y = cache.attend(*last)
    result = y.clone() if dtype == "float32" else None  # in 16 bits, right answers differ by what they round
    return {"result": result, "the largest tensor made, relative to the cache": max(made) / whole}


EVERY = ("results", "calls that raise a ValueError", "length after each call", "keys stored", "values stored",
         "keys and values are still the constructor's tensors", "q, k and v are unchanged")  # fmt: skip


def only(*keys):
    return dict.fromkeys(sorted({*EVERY} - {*keys}), "ignored")


@st.composite
def runs(draw, groups=st.just(1), scale=st.just(1.0), full=False, alike=False, devices=st.just("cpu")):
    kv_heads = draw(st.integers(1, 3))
    counts = draw(st.lists(st.integers(1, 4), min_size=1 + full, max_size=4))
    needed = sum(counts)
    capacity = draw(st.integers(1, needed - 1)) if full else needed + draw(any_of(0, 0, 1, 5))
    return given(draw(st.integers(1, 3)), draw(groups) * kv_heads, kv_heads, draw(st.integers(1, 5)), capacity, counts,
                 draw(scale), draw(st.integers(0, 99)), alike, draw(devices))  # fmt: skip


def case(*args, says="", device="cpu", scale=1.0, forget=0):
    """A case in which all key-value heads are alike: which of them a query head uses makes no difference."""
    alike = f"{says}; all key-value heads have the same keys and values"
    return given(*args, scale, 0, True, device, forget, says=says and alike)


sizes = st.integers(1, 5)
exercise.requirement(
    "a new cache has two tensors of the right shape, dtype and device, and a length of 0",
    points=0.25,
    hint="Which sizes does each of the two tensors have, in which order? Where do its dtype and device come from?",
    probe=makes,
    visible=[
        given(2, 3, 7, 5, torch.float32, "cpu", says="KVCache(2, 3, 7, 5, torch.float32, 'cpu')"),
        given(1, 2, 4, 8, torch.bfloat16, "meta", says="KVCache(1, 2, 4, 8, torch.bfloat16, 'meta')"),
    ],
    edges={
        "one of everything": given(1, 1, 1, 1, torch.float32, "cpu"),
        "all sizes equal": given(4, 4, 4, 4, torch.float64, "cpu"),
        "no room": given(2, 3, 0, 5, torch.float32, "cpu"),
        "the defaults": given(2, 3, 7, 5, None, None),
        "many tokens": given(1, 2, 10_000, 4, torch.float16, "cpu"),
    },
    domain=st.builds(given, sizes, sizes, sizes, sizes, any_of(torch.float32, torch.float64, torch.bfloat16, torch.float16),
                     any_of("cpu", "meta")),
)  # fmt: skip
exercise.requirement(
    "each new token attends to all tokens that were stored before, to the new ones before it, and to itself",
    points=0.75,
    probe=run,
    rules=only("results") | {"results": 1e-4},  # whoever computes the softmax in float32 does as kernels do
    visible=[
        case(1, 1, 1, 2, 4, [4], says="4 tokens at once, one head"),
        case(2, 2, 2, 4, 9, [3, 1, 1], says="3 tokens, then 1, then 1; two heads, two sequences"),
        case(1, 4, 2, 4, 6, [2, 3], says="2 tokens, then 3 at once; 4 query heads, 2 key-value heads"),
        case(1, 2, 1, 4, 4, [3, 1], device="meta", says="3 tokens, then 1, on the meta device"),
    ],
    edges={
        "one of everything": case(1, 1, 1, 1, 1, [1]),
        "one token after the other": case(2, 2, 2, 3, 6, [1] * 6),
        "many, then one": case(1, 2, 2, 4, 120, [100, 1]),
        "one, then many": case(1, 2, 2, 4, 120, [1, 100]),
        "large scores": case(1, 2, 2, 4, 8, [3, 2, 1], scale=30.0),
        "scores below any number that could hide one": case(1, 2, 2, 4, 8, [3, 2, 1], scale=3e4),
        "all sizes equal": case(3, 3, 3, 3, 6, [3, 3]),
        "more room than tokens": case(1, 2, 2, 4, 50, [3, 2]),
        "tiny scores": case(1, 1, 1, 4, 8, [3, 2, 1], scale=1e-3),
        "on another device": case(2, 4, 2, 4, 8, [3, 1], device="meta"),
        "many heads": case(1, 32, 8, 4, 5, [3, 1]),
        "two tokens are forgotten": case(2, 2, 2, 3, 9, [3, 1, 2], forget=2),
    },
    domain=runs(groups=st.integers(1, 4), scale=any_of(1.0, 1.0, 0.1, 10.0), alike=True,
                devices=any_of("cpu", "cpu", "cpu", "meta")),
    hint="If the cache already holds some tokens, at which position is the first new one? Which keys does it see?",
)
exercise.requirement(
    "neighboring query heads share a key-value head",
    points=0.5,
    probe=shares,
    visible=[
        given(4, 2, [4], says="which query heads use which key-value head? 4 query heads, 2 key-value heads, 4 tokens"),
        given(6, 2, [3, 1],
              says="which query heads use which key-value head? 6 query heads, 2 key-value heads, 3 tokens, then 1"),
        given(3, 3, [2, 1],
              says="which query heads use which key-value head? 3 query heads, 3 key-value heads, 2 tokens, then 1"),
        given(3, 1, [2, 1],
              says="which query heads use which key-value head? 3 query heads, one key-value head, 2 tokens, then 1"),
    ],
    edges={
        "as many key-value heads as groups": given(9, 3, [2, 1, 3]),
        "as many tokens as heads": given(4, 2, [4, 4]),
        "many heads": given(32, 8, [3, 1]),
    },
    domain=st.builds(lambda g, kv, counts, seed: given(g * kv, kv, counts, seed), st.integers(1, 4), st.integers(1, 4),
                     st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda counts: [2, *counts]), st.integers(0, 99)),
    hint="How many query heads share one key-value head? The statement has an example with 8 query heads.",
)  # fmt: skip
exercise.requirement(
    "new keys and values are stored after those that are already there, in the tensors made by the constructor",
    points=0.5,
    probe=run,
    rules=only(*EVERY[2:]),
    visible=[
        given(1, 1, 1, 2, 4, [3], says="the cache after 3 tokens"),
        given(2, 4, 2, 3, 9, [3, 1, 2],
              says="the cache after 3 tokens, then 1, then 2; 4 query heads, 2 key-value heads"),
    ],
    edges={
        "one of everything": given(1, 1, 1, 1, 1, [1]),
        "exactly full": given(1, 2, 2, 3, 6, [3, 2, 1]),
        "all sizes equal": given(3, 3, 3, 3, 6, [3, 3]),
        "two tokens are forgotten": given(2, 4, 2, 3, 9, [3, 1, 2], forget=2),
        "all but one are forgotten, where it was full": given(1, 2, 2, 3, 4, [3, 1], forget=3),
    },
    domain=runs(groups=st.integers(1, 3)),
    hint="Write into a slice of `self.keys` and of `self.values`. Where does that slice begin, and where does it end?",
)
exercise.requirement(
    "if there's no room for all the new tokens, attend raises ValueError and stores none of them",
    points=0.5,
    probe=run,
    rules=only("calls that raise a ValueError", "length after each call"),
    visible=[
        given(1, 2, 2, 3, 4, [3, 2, 1], says="3 tokens, then 2 that don't fit, then 1 that does; room for 4"),
        given(1, 2, 1, 3, 2, [3], says="3 tokens; room for 2"),
        given(1, 2, 1, 3, 3, [2, 1], says="2 tokens, then 1; room for 3"),
    ],
    edges={
        "no room at all": given(1, 1, 1, 2, 0, [1, 1]),
        "full": given(1, 1, 1, 2, 3, [3, 1]),
        "again and again": given(1, 1, 1, 2, 3, [2, 5, 2, 1, 1]),
        "exactly full is fine": given(2, 2, 2, 3, 6, [4, 2]),
    },
    domain=runs(full=True) | runs(groups=st.integers(1, 2)),
    hint="Check before you write: how many tokens would the cache hold, and for how many does it have room?",
)
exercise.requirement(
    "for one new token, attend doesn't copy what is stored",
    points=0.5,
    probe=allocates,
    bounds={"the largest tensor made, relative to the cache": (0.0, 0.2)},
    rules={"result": 1e-4},
    visible=[
        given(1, 4, 2, 64, 150, 1, says="a new token after 150 others; 4 query heads, 2 key-value heads of size 64"),
        given(1, 2, 2, 64, 150, 1, 0, 49,
              says="a new token after 150 others, with room for 49 more; 2 query heads, 2 key-value heads of size 64"),
        given(1, 2, 2, 64, 150, 1, 0, 49, "bfloat16",
              says="a new token after 150 others, in bfloat16, with room for 49 more; 2 query heads, 2 key-value "
                   "heads of size 64"),
    ],
    edges={
        "one key-value head": given(1, 4, 1, 64, 120, 1),
        "two sequences in 16 bits": given(2, 4, 2, 64, 100, 1, 0, 10, "bfloat16"),
        "two sequences": given(2, 4, 2, 64, 100, 1),
        "in float16": given(2, 4, 2, 64, 100, 1, 0, 10, "float16"),
    },
    domain=st.builds(lambda b, g, kv, n, seed: given(b, g * kv, kv, 64, n, 1, seed, n // 4),
                     st.integers(1, 2), st.integers(1, 4), st.integers(1, 2), st.integers(100, 200), st.integers(0, 99)),
    hint="A slice is a view. Which of your operations copy the stored keys or values, for example by repeating or "
         "concatenating them?",
)  # fmt: skip

MASK = ".tril(start)"
STORE = "self.keys[:, :, start:end] = k\n        self.values[:, :, start:end] = v"
CHECK = "if end > self.keys.shape[2]"
SLICES = "keys, values = self.keys[:, :, :end], self.values[:, :, :end]"
exercise.mistake(
    "If the cache already holds tokens, the new ones don't begin at position 0. Shift the causal mask accordingly.",
    f"{MASK} → .tril()",
)  # fmt: skip
exercise.mistake("A new token has to attend to itself, too.", f"{MASK} → .tril(start - 1)")
exercise.mistake("A new token must not attend to the one after it.", f"{MASK} → .tril(start + 1)")
exercise.mistake(
    "Your mask is reversed. It lets each new token attend only to itself and to the tokens after it.",
    f"{MASK} → .triu(start)",
)  # fmt: skip
exercise.mistake("Attention has to be causal among the new tokens, too. Hide the later ones from the earlier ones.",
                 "attn_mask=seen.repeat(group, 1) → attn_mask=None")  # fmt: skip
exercise.mistake("A new token has to attend to all stored tokens, not only to the new ones.",
                 f"{SLICES} → keys, values = k, v",
                 "torch.ones(end - start, end, → torch.ones(end - start, end - start,",
                 f"{MASK} → .tril()")  # fmt: skip
exercise.mistake("Attend only to the slots in use. The empty ones hold zeros, which get part of the attention.",
                 f"{SLICES} → keys, values = self.keys, self.values",
                 "torch.ones(end - start, end, → torch.ones(end - start, self.keys.shape[2],",
                 f"{MASK} → .logical_or(torch.zeros((), device=q.device))")  # fmt: skip
neighbors = "Neighboring query heads share a key-value head. In your code, neighbors use different ones."
exercise.mistake(neighbors, "b (kv g) t e -> b kv (g t) e → b (g kv) t e -> b kv (g t) e",
                 "b kv (g t) e -> b (kv g) t e → b kv (g t) e -> b (g kv) t e")  # fmt: skip
exercise.mistake("The heads of your result aren't in the same order as those of the queries.",
                 "b kv (g t) e -> b (kv g) t e → b kv (g t) e -> b (g kv) t e")  # fmt: skip
exercise.mistake("The rows of your mask aren't in the same order as the queries. Which new token does each row "
                 "belong to?",
                 "seen.repeat(group, 1) → seen.repeat_interleave(group, dim=0)")  # fmt: skip
exercise.mistake(
    "The scores aren't scaled. Divide them by √e before the softmax.",
    "attn_mask=seen → scale=1.0, attn_mask=seen",
)  # fmt: skip
exercise.mistake("Divide the scores by √e, not by e.",
                 "attn_mask=seen → scale=1 / q.shape[-1], attn_mask=seen")  # fmt: skip
exercise.mistake(
    "Your code stores keys as values, and values as keys.",
    f"{STORE} → self.keys[:, :, start:end] = v\n        self.values[:, :, start:end] = k",
)  # fmt: skip
exercise.mistake("Create the mask on the same device as the cache.", ", device=q.device).tril → ).tril")
exercise.mistake("Your code never stores the values.", f"{STORE} → self.keys[:, :, start:end] = k")
exercise.mistake("Your code never updates `self.length`. It has to grow with each call.", "self.length = end → pass")
exercise.mistake("`self.length` counts tokens, not calls.", "self.length = end → self.length = start + 1")
exercise.mistake("Your code raises no error if the new tokens don't all fit. Raise ValueError.", f"{CHECK} → if False")
exercise.mistake(
    "Your code raises an error too early. New tokens that fill the cache exactly still fit.",
    f"{CHECK} → if end >= self.keys.shape[2]",
)  # fmt: skip
exercise.mistake(
    "If the new tokens don't all fit, raise ValueError, not another error.",
    "raise ValueError → raise IndexError",
)  # fmt: skip
exercise.mistake("If the new tokens don't all fit, store none of them.",
                 f"{CHECK} → self.keys[:, :, start:end] = k[:, :, : self.keys.shape[2] - start]; self.values[:, :, start:end] = v[:, :, : self.keys.shape[2] - start]; self.length = min(end, self.keys.shape[2])\n        {CHECK}")  # fmt: skip
exercise.mistake(
    "Keys and values need two separate tensors. In your code, they share one.",
    "torch.zeros_like(self.keys) → self.keys",
)  # fmt: skip
exercise.mistake("Create both tensors with the dtype that the constructor gets.", "size, dtype=dtype, → size,")
exercise.mistake("Create both tensors on the device that the constructor gets.", ", device=device) → )")
exercise.mistake("The third dimension of both tensors is for the tokens, so its size has to be `capacity`.",
                 "torch.zeros(batch, kv_heads, capacity, size, → torch.zeros(batch, capacity, kv_heads, size,")  # fmt: skip
exercise.mistake("Your code copies the stored keys for each query head that shares them. Arrange the queries "
                 "instead, so that nothing is copied.",
                 "grouped = rearrange(q, \"b (kv g) t e -> b kv (g t) e\", g=group) → grouped = q",
                 f"{SLICES} → keys, values = (x[:, :, :end].repeat_interleave(group, dim=1) for x in (self.keys, self.values))",
                 "seen.repeat(group, 1) → seen",
                 "return rearrange(y, \"b kv (g t) e -> b (kv g) t e\", g=group) → return y")  # fmt: skip

# %% mistake: appends with torch.cat
# says: Your code copies the whole cache for each new token. Write into the tensors made by the constructor.
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.capacity = capacity
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        t = q.shape[2]
        if self.length + t > self.capacity:
            raise ValueError("full")
        self.keys = torch.cat([self.keys[:, :, : self.length], k], dim=2)
        self.values = torch.cat([self.values[:, :, : self.length], v], dim=2)
        self.length += t
        group = q.shape[1] // k.shape[1]
        q = q.unflatten(1, (k.shape[1], group)).flatten(2, 3)
        seen = torch.ones(t, self.length, dtype=torch.bool, device=q.device).tril(self.length - t)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen.repeat(group, 1))
        return y.unflatten(2, (group, t)).flatten(1, 2)

# %% mistake: PyTorch's causal attention
# says: `is_causal=True` puts the queries at the first positions, so a single new token sees only the oldest key.
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        end = self.length + k.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError("full")
        self.keys[:, :, self.length : end], self.values[:, :, self.length : end] = k, v
        self.length = end
        return F.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=True, enable_gqa=True
        )

# %% wrong: 16 bits are kept in 32
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        kind = dtype if dtype.itemsize >= 4 else torch.float32
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=kind, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError("full")
        self.keys[:, :, start:end], self.values[:, :, start:end] = k, v
        self.length = end
        mask = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(start).repeat(h // k.shape[1], 1)
        y = F.scaled_dot_product_attention(
            q.reshape(b, k.shape[1], -1, e).to(self.keys.dtype), self.keys[:, :, :end], self.values[:, :, :end], attn_mask=mask
        )
        return y.reshape(b, h, t, e).to(q.dtype)

# %% wrong: keys and values under each other's name
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.values = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.keys = torch.zeros_like(self.values)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError("full")
        self.values[:, :, start:end], self.keys[:, :, start:end] = k, v
        self.length = end
        mask = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(start).repeat(h // k.shape[1], 1)
        y = F.scaled_dot_product_attention(
            q.reshape(b, k.shape[1], -1, e), self.values[:, :, :end], self.keys[:, :, :end], attn_mask=mask
        )
        return y.reshape(b, h, t, e)

# %% wrong: one token at a time is right, many are not causal
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        start, end = self.length, self.length + k.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError("full")
        self.keys[:, :, start:end], self.values[:, :, start:end] = k, v
        self.length = end
        b, h, t, e = q.shape
        grouped = q.reshape(b, k.shape[1], -1, e)
        weights = (grouped @ self.keys[:, :, :end].mT / math.sqrt(e)).softmax(dim=-1)
        return (weights @ self.values[:, :, :end]).reshape(b, h, t, e)

# %% wrong: stores before it looks whether there is room
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, self.length = self.length, self.length + t
        if self.length > self.keys.shape[2]:
            raise ValueError("full")
        self.keys[:, :, start : start + t], self.values[:, :, start : start + t] = k, v
        group = h // k.shape[1]
        seen = torch.ones(t, start + t, dtype=torch.bool, device=q.device).tril(start)
        y = F.scaled_dot_product_attention(
            q.reshape(b, -1, group * t, e), self.keys[:, :, : start + t], self.values[:, :, : start + t],
            attn_mask=seen.repeat(group, 1),
        )  # fmt: skip
        return y.reshape(b, h, t, e)

# %% wrong: the whole cache converted to float64 for the scores
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError("full")
        self.keys[:, :, start:end], self.values[:, :, start:end] = k, v
        self.length = end
        keys, values = (x[:, :, :end].to(torch.float64, copy=True) for x in (self.keys, self.values))
        scores = q.double().reshape(b, k.shape[1], -1, e) @ keys.mT / e**0.5
        hidden = torch.ones(t, end, dtype=torch.bool).triu(start + 1).repeat(h // k.shape[1], 1)
        y = scores.masked_fill(hidden, -math.inf).softmax(-1) @ values
        return y.reshape(b, h, t, e).to(q.dtype)

# %% wrong: keeps what it was given, instead of storing it (from the statement)
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.empty(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.empty(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.capacity, self.length, self.parts = capacity, 0, []

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        if self.length + t > self.capacity:
            raise ValueError("the cache is full")
        self.parts.append((k, v))
        self.length += t
        keys = torch.cat([k for k, _ in self.parts], dim=2).repeat_interleave(h // k.shape[1], dim=1)
        values = torch.cat([v for _, v in self.parts], dim=2).repeat_interleave(h // k.shape[1], dim=1)
        mask = torch.ones(t, self.length, dtype=torch.bool, device=q.device).tril(self.length - t)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)

# %% wrong: query heads by the remainder (from the statement)
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.length = 0

    def attend(self, q, k, v):
        h, t, n = q.shape[1], q.shape[2], k.shape[1]
        end = self.length + t
        if end > self.keys.shape[2]:
            raise ValueError(f"room for {self.keys.shape[2]}, not {end}")
        self.keys[:, :, self.length : end] = k
        self.values[:, :, self.length : end] = v
        allowed = torch.ones(t, end, device=q.device).tril(self.length).bool()
        self.length = end
        heads = []
        for i in range(h):
            scores = q[:, i] @ self.keys[:, i % n, :end].mT / math.sqrt(q.shape[-1])
            heads.append(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ self.values[:, i % n, :end])
        return torch.stack(heads, dim=1)

# %% wrong: drops the oldest tokens if there is no room (from the statement)
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        capacity = self.keys.shape[2]
        if t > capacity:
            raise ValueError("more tokens than there is room for")
        if self.length + t > capacity:
            self.keys.copy_(self.keys.roll(-t, dims=2))
            self.values.copy_(self.values.roll(-t, dims=2))
            self.length = capacity - t
        start, end = self.length, self.length + t
        self.keys[:, :, start:end], self.values[:, :, start:end] = k, v
        self.length = end
        mask = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(start).repeat(h // k.shape[1], 1)
        y = F.scaled_dot_product_attention(
            q.reshape(b, k.shape[1], -1, e), self.keys[:, :, :end], self.values[:, :, :end], attn_mask=mask
        )
        return y.reshape(b, h, t, e)

# %% wrong: all that is stored is converted to float32 (from the statement)
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError(f"no room for {t} more tokens")
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        kv = self.keys.shape[1]
        g = h // kv
        keys, values = self.keys[:, :, :end].float(), self.values[:, :, :end].float()
        scores = q.float().reshape(b, kv, g * t, e) @ keys.mT / math.sqrt(e)
        seen = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(diagonal=start)
        weights = scores.view(b, kv, g, t, end).masked_fill(~seen, -math.inf).softmax(-1)
        return (weights.view(b, kv, g * t, end) @ values).view(b, h, t, e).to(q.dtype)

# %% wrong: slices of the cache are made contiguous (from the statement)
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError(f"no room for {t} more tokens")
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        keys = self.keys[:, :, :end].contiguous()
        values = self.values[:, :, :end].contiguous()
        g = h // keys.shape[1]
        mask = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(diagonal=start).repeat(g, 1)
        out = F.scaled_dot_product_attention(q.reshape(b, -1, g * t, e), keys, values, attn_mask=mask)
        return out.reshape(b, h, t, e)

# %% wrong: caches of the same shape share their tensors (from the statement)
class KVCache:
    _pool: dict = {}

    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        name = (batch, kv_heads, capacity, size, dtype, str(device))
        if name not in KVCache._pool:
            shape = (batch, kv_heads, capacity, size)
            KVCache._pool[name] = (
                torch.zeros(shape, dtype=dtype, device=device),
                torch.zeros(shape, dtype=dtype, device=device),
            )
        self.keys, self.values = KVCache._pool[name]
        self.length = 0

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError(f"no room for {t} more tokens")
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        keys, values = self.keys[:, :, :end], self.values[:, :, :end]
        g = h // keys.shape[1]
        mask = None
        if t > 1:
            mask = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(diagonal=start).repeat(g, 1)
        out = F.scaled_dot_product_attention(q.reshape(b, -1, g * t, e), keys, values, attn_mask=mask)
        return out.reshape(b, h, t, e)

# %% wrong: counts for itself how many are stored, whatever length says (from the statement)
# unseen: only hidden inputs lower the length
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = self.stored = 0

    def attend(self, q, k, v):
        start, end = self.stored, self.stored + k.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError
        self.keys[:, :, start:end], self.values[:, :, start:end] = k, v
        self.stored = self.length = end
        groups = q.shape[1] // k.shape[1]
        mask = torch.ones(q.shape[2], end, dtype=torch.bool, device=q.device).tril(start).repeat(groups, 1)
        q = rearrange(q, "b (h g) t e -> b h (g t) e", g=groups)
        y = F.scaled_dot_product_attention(q, self.keys[:, :, :end], self.values[:, :, :end], attn_mask=mask)
        return rearrange(y, "b h (g t) e -> b (h g) t e", g=groups)

# %% wrong: hides with a number that fits into float16, too (from the statement)
# unseen: the visible scores are not as low
class KVCache:
    """Keys and values of one layer, for up to `capacity` tokens in each of `batch` sequences."""

    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu") -> None:
        self.keys = torch.empty(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.empty_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        """Append k and v to what is stored, and attend causally to all of it."""
        b, h, t, e = q.shape
        end = self.length + t
        if end > self.keys.shape[2]:
            raise ValueError("the cache is full")
        self.keys[:, :, self.length : end].copy_(k)
        self.values[:, :, self.length : end].copy_(v)
        # -1e4 because it fits into float16, too
        mask = torch.full((t, end), -1e4, dtype=q.dtype, device=q.device).triu(self.length + 1)
        group = h // k.shape[1]
        y = F.scaled_dot_product_attention(
            q.reshape(b, h // group, group * t, e),
            self.keys[:, :, :end],
            self.values[:, :, :end],
            attn_mask=mask.repeat(group, 1),
        )
        self.length = end
        return y.reshape(b, h, t, e)

# %% wrong: hides by -1e9, which float16 does not have (from the statement)
# unseen: the visible caches are not in float16
class KVCache:
    """Keys and values of one layer, for up to `capacity` tokens in each of `batch` sequences."""

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        capacity: int,
        size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        shape = (batch, kv_heads, capacity, size)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self.length = 0

    def attend(
        self,
        q: Float[Tensor, "b h t e"],
        k: Float[Tensor, "b kv_heads t e"],
        v: Float[Tensor, "b kv_heads t e"],
    ) -> Float[Tensor, "b h t e"]:
        """Append k and v to what is stored, and attend causally to all of it."""
        b, h, t, e = q.shape
        start, end = self.length, self.length + t
        if end > self.keys.shape[2]:
            raise ValueError("the cache is full")
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        keys, values = self.keys[:, :, :end], self.values[:, :, :end]
        q = rearrange(q, "b (h g) t e -> b h g t e", h=k.shape[1])
        scores = torch.einsum("bhgte,bhse->bhgts", q / math.sqrt(e), keys)
        if t > 1:
            hidden = torch.ones(t, end, dtype=torch.bool, device=q.device).triu(start + 1)
            scores = scores.masked_fill(hidden, -1e9)
        y = torch.einsum("bhgts,bhse->bhgte", scores.softmax(dim=-1), values)
        return rearrange(y, "b h g t e -> b (h g) t e")

# %% right: einsum with a dimension for the group
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys, self.values = (
            torch.empty(batch, kv_heads, capacity, size, dtype=dtype, device=device) for _ in range(2)
        )
        self.length = 0

    def attend(self, q, k, v):
        t = k.shape[2]
        if self.length + t > self.keys.shape[2]:
            raise ValueError("the cache is full")
        new = slice(self.length, self.length + t)
        self.keys[:, :, new] = k
        self.values[:, :, new] = v
        self.length += t
        q = rearrange(q, "b (n g) t e -> b n g t e", n=k.shape[1])
        keys, values = self.keys[:, :, : self.length], self.values[:, :, : self.length]
        scores = torch.einsum("bngte,bnse->bngts", q, keys) / math.sqrt(q.shape[-1])
        position = torch.arange(new.start, new.stop, device=q.device)
        hidden = torch.arange(self.length, device=q.device) > position[:, None]
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        return rearrange(torch.einsum("bngts,bnse->bngte", weights, values), "b n g t e -> b (n g) t e")

# %% right: head by head
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.capacity, self.length = capacity, 0
        self.keys = torch.zeros((batch, kv_heads, capacity, size), dtype=dtype, device=device)
        self.values = self.keys.clone()

    def attend(self, q, k, v):
        b, h, t, e = q.shape
        start = self.length
        if t > self.capacity - start:
            raise ValueError("no room")
        self.keys.narrow(2, start, t).copy_(k)
        self.values.narrow(2, start, t).copy_(v)
        self.length = start + t
        y = torch.empty_like(q)
        for head in range(h):
            shared = head * k.shape[1] // h
            for i in range(t):
                seen = slice(0, start + i + 1)
                scores = self.keys[:, shared, seen] @ q[:, head, i, :, None] / e**0.5
                y[:, head, i] = (scores.softmax(dim=1).mT @ self.values[:, shared, seen])[:, 0]
        return y

# %% right: a mask of numbers
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        shape = batch, kv_heads, capacity, size
        self.keys = torch.full(shape, 0, dtype=dtype, device=device)
        self.values = torch.full(shape, 0, dtype=dtype, device=device)
        self.length = 0

    def attend(self, q, k, v):
        (b, h, t, e), n = q.shape, k.shape[1]
        old, now = self.length, self.length + t
        if now > self.keys.size(2):
            raise ValueError(f"{now} tokens, room for {self.keys.size(2)}")
        self.keys[..., old:now, :], self.values[..., old:now, :] = k, v
        self.length = now
        mask = torch.full((t, now), -torch.inf, dtype=q.dtype, device=q.device).triu(old + 1)
        scores = q.reshape(b, n, h // n * t, e) @ self.keys[..., :now, :].transpose(-1, -2)
        weights = (scores * e**-0.5 + mask.repeat(h // n, 1)).softmax(dim=-1)
        return (weights @ self.values[..., :now, :]).view(b, h, t, e)

# %% equivalent: torch.zeros → torch.ones
# why: what no token has been stored in is never read
