import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.probing import causal_biases
from autograder.authoring.strategies import any_of

exercise = Exercise("Write down the passes: which tokens does each process, at which positions, and what does the cache already hold?")


def write(student, ids, count, heads, size, blocks, places=24, dtype="float64", device="cpu", seed=4, again=False, recording=True, stops=False):
    """What is written by a small model of our own, and all that goes in and out meanwhile.

    The model has the parts of the capstone's and no forward pass. ``again``: it has written before. Without
    ``recording`` the caller has switched gradients off. With ``stops``, the second pick raises an error.
    """
    import contextlib

    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    vocabulary, width = 7, heads * size
    generator = torch.Generator().manual_seed(seed)

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
            self.out = torch.nn.Linear(width, width, bias=False)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            # Not the default: the norms themselves have to be called, and not a function that they may differ from.
            self.norm_1, self.norm_2 = torch.nn.LayerNorm(width, eps=0.1), torch.nn.LayerNorm(width, eps=0.2)
            self.up = torch.nn.Linear(width, 4 * width, bias=False)
            self.down = torch.nn.Linear(4 * width, width, bias=False)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(places, width)
            self.blocks = torch.nn.ModuleList(Block() for _ in range(blocks))
            self.norm = torch.nn.LayerNorm(width, eps=0.3)

    model = Model().to(getattr(torch, dtype))
    with torch.no_grad():
        for name, p in model.named_parameters():  # a large shift would decide alone what comes next
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64) * (0.2 if "bias" in name else 1))
    model = model.to(device)
    matrices = {p.untyped_storage()._cdata: (n, p.numel()) for n, p in model.blocks.named_parameters() if p.dim() == 2}
    rows = {name: 0.0 for name, _ in matrices.values()}
    asked, recorded, odd = [], [], set()

    class Watch(TorchDispatchMode):
        """Counts the rows that each matrix of a layer multiplies, and sees what is stored or mixed in a wrong way."""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            given = [x for x in args if isinstance(x, torch.Tensor)]
            if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm, torch.ops.aten.linear):
                for x in given:
                    name, whole = matrices.get(x.untyped_storage()._cdata, ("", 0))
                    others = [y for y in given if y is not x]
                    if whole and others:  # a slice of a matrix counts for what it is of it
                        inputs = width * (4 if name.endswith("down.weight") else 1)
                        rows[name] += others[-1].numel() // inputs * x.numel() / whole
            stores = func._schema.name in ("aten::copy_", "aten::index_copy_", "aten::index_put_", "aten::scatter_")
            if stores and given[0].is_floating_point() and given[0].dtype != model.tokens.weight.dtype:
                odd.add("dtype")
            away = [x.device.type != device for x in given if x.dim()]
            if any(away) and not all(away) and func._schema.name != "aten::copy_":
                odd.add("device")
            return func(*args, **(kwargs or {}))

    def pick(scores):
        asked.append(scores.clone())
        if stops and len(asked) == 2:
            raise KeyError("no choice")
        return scores.argmax(dim=-1) if scores.dim() == 2 else torch.zeros(len(ids), dtype=torch.int64, device=device)

    def kept(x):
        recorded.append(1)
        return x

    given_ids, result = ids.to(device, copy=True), None
    before = torch.is_grad_enabled()
    try:
        if again:
            student.generate(model, heads, given_ids, count, lambda scores: scores.argmin(dim=-1))
        torch.set_grad_enabled(recording)
        with torch.autograd.graph.saved_tensors_hooks(kept, lambda x: x), Watch(), causal_biases():
            with contextlib.suppress(KeyError if stops else ()):
                result = student.generate(model, heads, given_ids, count, pick)
        gradients = torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(before)
    return {
        "result": result.clone() if torch.is_tensor(result) else result,
        "ids afterward": given_ids,
        "logits that pick gets": [x.detach() for x in asked],
        "calls of pick": len(asked),
        "something is stored in another dtype": "dtype" in odd,
        "something is on another device": "device" in odd,
        "rows that a layer's matrix multiplies": round(max(rows.values(), default=0), 6),
        "kept for a backward pass": bool(recorded) or any(x.requires_grad for x in asked),
        "gradients are recorded afterward": gradients,
    }


WRITTEN = (
    "result", "ids afterward", "logits that pick gets", "something is stored in another dtype",
    "something is on another device",
)
ONCE = ("calls of pick", "rows that a layer's matrix multiplies")
RECORDED = ("calls of pick", "kept for a backward pass", "gradients are recorded afterward")


def only(*keys):
    return dict.fromkeys(sorted({*WRITTEN, *ONCE, *RECORDED} - {*keys}), "ignored")


def ids(*rows):
    return torch.tensor(rows)


@st.composite
def runs(draw, least=0):
    t, b = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 6), min_size=t, max_size=t)
    rows = torch.tensor(draw(st.lists(row, min_size=b, max_size=b)))
    count = draw(st.integers(least, 6))
    places = max(t + count - 1, 1) + draw(any_of(0, 0, 1, 9))
    return given(rows, count, draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 3)), places,
                 "float64", "cpu", draw(st.integers(0, 99)))  # fmt: skip


A_MODEL = "using a small test model (pick takes the largest logit)"
rare = {
    "a prompt of one token": given(ids([3]), 4, 2, 3, 2),
    "one token": given(ids([2, 2, 2, 2]), 1, 2, 3, 2),
    "as many rows as tokens": given(ids([1, 2, 3], [4, 5, 6], [0, 1, 2]), 3, 2, 3, 2),
    "fifty rows": given(torch.arange(100).reshape(50, 2) % 7, 2, 2, 3, 2),
    "a transposed batch": given(ids([1, 2], [3, 4], [5, 6]).T, 2, 2, 3, 2),
    "a head for each number": given(ids([1, 4, 2]), 3, 4, 1, 2),
    "one head": given(ids([1, 4, 2], [3, 3, 0]), 3, 1, 4, 2),
    "all positions used": given(ids([1, 4, 2, 0]), 5, 2, 2, 2, 8),
    "more new tokens than old ones": given(ids([1, 4], [0, 6]), 20, 2, 2, 1),
    "many layers": given(ids([1, 4, 2]), 3, 2, 2, 6),
    "sizes that are all equal": given(ids([1, 4], [0, 6]), 2, 2, 2, 2),
}
exercise.requirement(
    "each row is continued by `count` ids, and pick gets the logits that a model without a cache computes; `ids` isn't changed",
    points=1.5,
    probe=write,
    rules=only(*WRITTEN),
    visible=[
        given(ids([1, 4, 2]), 3, 2, 2, 2, says=f"[[1, 4, 2]] continued by 3 tokens, {A_MODEL}, with 2 layers and 2 heads"),
        given(ids([1, 4], [0, 6]), 2, 3, 2, 1, says=f"[[1, 4], [0, 6]] continued by 2 tokens, {A_MODEL}, with one layer and 3 heads"),
        given(ids([5, 3]), 0, 2, 2, 1, says=f"[[5, 3]] continued by 0 tokens, {A_MODEL}"),
        given(ids([5], [3]), 2, 2, 2, 1, 24, "bfloat16", "meta", says="[[5], [3]] continued by 2 tokens, using a bfloat16 model on the meta device"),
        given(ids([2, 6]), 2, 2, 2, 1, again=True, says=f"[[2, 6]] continued by 2 tokens for the second time, {A_MODEL}"),
    ],
    edges={
        **rare,
        "nothing to write": given(ids([5], [6]), 0, 2, 2, 1),
        "another text before": given(ids([1, 4], [0, 6]), 3, 2, 2, 2, again=True),
        "float32": given(ids([1, 4, 2]), 3, 2, 2, 2, 24, "float32"),
        "float16, on another device": given(ids([1, 4, 2]), 3, 2, 2, 2, 24, "float16", "meta"),
    },
    domain=runs(),
    hint="Compute what Transformer, Block and Attention compute, in the same order.",
)  # fmt: skip
exercise.requirement(
    "each token except the last passes through each layer once; pick is called once for each new token",
    points=1,
    probe=write,
    rules=only(*ONCE) | {"rows that a layer's matrix multiplies": "at most"},
    visible=[
        given(ids([1, 4, 2]), 3, 2, 2, 2, says="how many tokens the layers process for [[1, 4, 2]] and 3 more"),
        given(ids([1, 4], [0, 6]), 4, 3, 2, 1, says="how many tokens the layers process for [[1, 4], [0, 6]] and 4 more each"),
        given(ids([1, 4]), 0, 2, 2, 1, says="how many tokens the layers process for [[1, 4]] and 0 more"),
    ],
    edges={**rare, "nothing to write": given(ids([5], [6]), 0, 2, 2, 1)},
    domain=runs(),
    hint="The first pass gets the prompt, each later pass the newest column.",
)
exercise.requirement(
    "nothing is recorded for a backward pass, and gradient recording is left on or off, as it was before",
    points=0.5,
    probe=write,
    rules=only(*RECORDED),
    visible=[
        given(ids([1, 4]), 2, 2, 2, 1, says=f"2 tokens, {A_MODEL}: what is recorded?"),
        given(ids([1, 4]), 0, 2, 2, 1, says="no tokens: what is recorded?"),
        given(ids([1, 4]), 2, 2, 2, 1, recording=False, says="2 tokens, for a caller who has switched recording off"),
    ],
    edges=rare | {"a caller without gradients": given(ids([3], [1]), 3, 2, 3, 2, recording=False),
                  "pick raises an error": given(ids([3, 1]), 3, 2, 3, 2, stops=True)},
    domain=runs(),
    hint="That's what torch.no_grad() is for.",
)

PASS = "for _ in range(count):"
LAST = "model.norm(x[:, -1])"
NEW = f"pick(F.linear({LAST}, table))[:, None]"
CACHES = "caches = [KVCache(*sizes, table.dtype, table.device) for _ in model.blocks]"
exercise.mistake("The positions of new tokens begin where the cache ends, not at 0 again.", "weight[start:end] → weight[: new.shape[1]]")
exercise.mistake("The newest token's position is one less than the number of tokens so far.",
                 "weight[start:end] → weight[start + (start > 0) : end + (start > 0)]",
                 "places.weight → places.weight.repeat(2, 1)")  # fmt: skip
exercise.mistake("The positional embedding is missing.", "+ model.places.weight[start:end] →")
exercise.mistake("Each layer has keys and values of its own: it needs its own cache.", "for _ in model.blocks] → for _ in model.blocks]\n    caches = caches[:1] * len(caches)",
                 "ids.shape[1] + count → (ids.shape[1] + count) * len(model.blocks)")  # fmt: skip
exercise.mistake("A token attends to all tokens before it, not only to those of the same pass.", f"{PASS} → {PASS}\n            {CACHES}")
exercise.mistake("A token must not see later ones: the prompt needs the causal mask, too.", ".tril(start) →")
exercise.mistake("With is_causal=True, PyTorch puts the new token at the first position, where it sees only the first key.",
                 "attn_mask=seen → is_causal=True")  # fmt: skip
exercise.mistake("A token sees itself as well as those before it.", ".tril(start) → .tril(start - 1) | (torch.arange(end, device=q.device) == 0)")
exercise.mistake("The whole text passes through the layers each time: with a cache, only the new tokens have to.",
                 "new, start = ids, 0 → pass", f"{PASS} → {PASS}\n            {CACHES}\n            new, start = ids, 0")  # fmt: skip
exercise.mistake("The last new token is processed as well, although its logits aren't needed.",
                 f"{PASS} → for step in range(count + 1 if count else 0):",
                 "weight[start:end] → weight.repeat(2, 1)[start:end]",
                 "new = pick → if step == count:\n                break\n            new = pick")  # fmt: skip
exercise.mistake("The logits at the last position say what comes next, not those at the first.", "x[:, -1] → x[:, 0]")
exercise.mistake("The last norm is missing.", f"{LAST} → x[:, -1]")
exercise.mistake("Attention should read the normalized stream.", "qkv(block.norm_1(x)) → qkv(x)")
exercise.mistake("The feed-forward block should read the normalized stream.", "up(block.norm_2(x)) → up(x)")
exercise.mistake("Attention's output should be added to "
                 "the stream, not replace it.", "x = x + block.attention.out → x = block.attention.out")
exercise.mistake("The output of the feed-forward block should be added to "
                 "the stream, not replace it.", "x = x + block.down → x = block.down")
exercise.mistake("The second norm should read the stream after attention's output has been added.",
                 "x = x + block.attention.out(gathered) → before = x; x = x + block.attention.out(gathered)", "norm_2(x) → norm_2(before)")  # fmt: skip
exercise.mistake("The GELU between up and down is missing.", "F.gelu(block.up(block.norm_2(x))) → block.up(block.norm_2(x))")
exercise.mistake("The nonlinearity should be a GELU.", "F.gelu → F.relu")
exercise.mistake("This is the tanh approximation of GELU; the model was trained with the exact one.",
                 "F.gelu(block.up(block.norm_2(x))) → F.gelu(block.up(block.norm_2(x)), approximate='tanh')")  # fmt: skip
exercise.mistake("The product with attention.out is missing.", "block.attention.out(gathered) → gathered")
exercise.mistake("The outputs of qkv are first all queries, then all keys, then all "
                 "values.", "(three h e) → (h three e)")
exercise.mistake("A head's numbers are consecutive.", "(three h e) → (three e h)")
exercise.mistake("When you merge the heads, keep each head's numbers consecutive.", '"b h t e -> b t (h e)" → "b h t e -> b t (e h)"')
exercise.mistake("pick should get one row of logits for each row of ids: those at its last position.",
                 f"{NEW} → pick(F.linear(model.norm(x), table)[:, -1:])[:, -1:]")  # fmt: skip
exercise.mistake("Return the old ids as well, before the new ones.", "    return ids → return ids[:, ids.shape[1] - count :]")
exercise.mistake("Put the new id after the others.", "torch.cat([ids, new], dim=1) → torch.cat([new, ids], dim=1)")
exercise.mistake("Every row has its own next token.", f"{NEW} → {NEW}[:1].expand(len(ids), 1)")
exercise.mistake("Your result has one token too many.", "range(count) → range(count + 1)", "places.weight → places.weight.repeat(2, 1)",
                 "ids.shape[1] + count → ids.shape[1] + count + 1")  # fmt: skip
exercise.mistake("Your code stops one token early.", "range(count) → range(count - 1)")
exercise.mistake("Everything is recorded for a backward pass, in every call: memory fills up.", "with torch.no_grad(): → if True:",
                 "[:, :, start:end] = k → [:, :, start:end] = k.detach()", "[:, :, start:end] = v → [:, :, start:end] = v.detach()")  # fmt: skip
exercise.mistake("Gradient recording stays off after "
                 "your function has returned.", "with torch.no_grad(): → torch.set_grad_enabled(False)\n    if True:")
exercise.mistake("If the caller had switched recording off, it's on afterward: leave it as it was.", "    return ids → torch.set_grad_enabled(True)\n    return ids")
exercise.mistake("Don't change the ids that you were given: your code extends them in place.",
                 "new, start = ids, 0 → new, start, old = ids.clone(), 0, ids",
                 "    return ids → return old.resize_(ids.shape).copy_(ids)")  # fmt: skip
exercise.mistake("The cache has to be in the dtype of the model, and on its device.", "table.dtype, table.device → torch.float64, torch.device('cpu')")
exercise.mistake("The cache has to be in the dtype of the model: a wider one only costs memory.", "table.dtype, table.device → torch.float64, table.device",
                 "self.keys[:, :, :end], self.values[:, :, :end] → self.keys[:, :, :end].to(q.dtype), self.values[:, :, :end].to(q.dtype)")  # fmt: skip
exercise.mistake("Begin each text with empty caches: yours still hold the keys and values of the previous text.",
                 f"{CACHES} → made = [KVCache(*sizes, table.dtype, table.device) for _ in model.blocks]\n    caches = model.__dict__.setdefault('kept', made)",
                 "ids.shape[1] + count → 8 * (ids.shape[1] + count)")  # fmt: skip
exercise.mistake("The positions have to be on the model's device.", "model.places.weight[start:end] → model.places(torch.arange(start, end))")
exercise.mistake("A token's vector is in the row given "
                 "by its id.", "model.tokens(new) → model.tokens((new + 1) % len(table))")

# %% mistake: attention over the newest keys alone
# says: A token attends to all tokens before it, not only to those of the same pass.
def generate(model, heads, ids, count, pick):
    new, start = ids, 0
    with torch.no_grad():
        for _ in range(count):
            x = model.tokens(new) + model.places.weight[start : start + new.shape[1]]
            for block in model.blocks:
                q, k, v = rearrange(block.attention.qkv(block.norm_1(x)), "b t (three h e) -> three b h t e", three=3, h=heads)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + block.attention.out(rearrange(y, "b h t e -> b t (h e)"))
                x = x + block.down(F.gelu(block.up(block.norm_2(x))))
            start += new.shape[1]
            new = pick(model.norm(x[:, -1]) @ model.tokens.weight.T)[:, None]
            ids = torch.cat([ids, new], dim=1)
    return ids

# %% wrong: keys are kept, values aren't
def generate(model, heads, ids, count, pick):
    keys, new, start = [None] * len(model.blocks), ids, 0
    with torch.no_grad():
        for _ in range(count):
            x = model.tokens(new) + model.places.weight[start : start + new.shape[1]]
            for i, block in enumerate(model.blocks):
                q, k, v = rearrange(block.attention.qkv(block.norm_1(x)), "b t (three h e) -> three b h t e", three=3, h=heads)
                keys[i] = k if keys[i] is None else torch.cat([keys[i], k], dim=2)
                v = F.pad(v, (0, 0, keys[i].shape[2] - v.shape[2], 0))
                mask = torch.ones(q.shape[2], keys[i].shape[2], dtype=torch.bool, device=x.device).tril(start)
                y = F.scaled_dot_product_attention(q, keys[i], v, attn_mask=mask)
                x = x + block.attention.out(rearrange(y, "b h t e -> b t (h e)"))
                x = x + block.down(F.gelu(block.up(block.norm_2(x))))
            start += new.shape[1]
            new = pick(model.norm(x[:, -1]) @ model.tokens.weight.T)[:, None]
            ids = torch.cat([ids, new], dim=1)
    return ids

# %% wrong: no cache, but only the last query
def generate(model, heads, ids, count, pick):
    with torch.no_grad():
        for _ in range(count):
            x = model.tokens(ids) + model.places.weight[: ids.shape[1]]
            for block in model.blocks:
                q, k, v = rearrange(block.attention.qkv(block.norm_1(x)), "b t (three h e) -> three b h t e", three=3, h=heads)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + block.attention.out(rearrange(y, "b h t e -> b t (h e)"))
                x = x + block.down(F.gelu(block.up(block.norm_2(x))))
            ids = torch.cat([ids, pick(F.linear(model.norm(x)[:, -1], model.tokens.weight))[:, None]], dim=1)
    return ids

# %% wrong: row by row, with a call of pick for each
def generate(model, heads, ids, count, pick):
    rows = []
    for row in ids.split(1):
        keys = values = [None] * len(model.blocks)
        keys, values, new, start = list(keys), list(values), row, 0
        with torch.no_grad():
            for _ in range(count):
                x = model.tokens(new) + model.places.weight[start : start + new.shape[1]]
                for i, block in enumerate(model.blocks):
                    q, k, v = rearrange(block.attention.qkv(block.norm_1(x)), "b t (three h e) -> three b h t e", three=3, h=heads)
                    keys[i] = k if start == 0 else torch.cat([keys[i], k], dim=2)
                    values[i] = v if start == 0 else torch.cat([values[i], v], dim=2)
                    y = F.scaled_dot_product_attention(q, keys[i], values[i], is_causal=start == 0)
                    x = x + block.attention.out(rearrange(y, "b h t e -> b t (h e)"))
                    x = x + block.down(F.gelu(block.up(block.norm_2(x))))
                start += new.shape[1]
                new = pick(F.linear(model.norm(x[:, -1]), model.tokens.weight))[:, None]
                row = torch.cat([row, new], dim=1)
        rows.append(row)
    return torch.cat(rows)

# %% wrong: calls the model, as a loop without a cache does (from the statement)
def generate(model, heads, ids, count, pick):
    with torch.no_grad():
        for _ in range(count):
            ids = torch.cat([ids, pick(model(ids)[:, -1])[:, None]], dim=1)
    return ids

# %% wrong: the cache has room for the new tokens alone (from the statement)
class Cache:
    def __init__(self, b, h, room, e, like):
        self.k, self.v, self.n = like.new_zeros(b, h, room, e), like.new_zeros(b, h, room, e), 0

    def attend(self, q, k, v):
        t = q.shape[2]
        end = min(self.n + t, self.k.shape[2])
        self.k[:, :, self.n : end], self.v[:, :, self.n : end] = k[:, :, : end - self.n], v[:, :, : end - self.n]
        seen = torch.ones(t, end, dtype=torch.bool, device=q.device).tril(self.n)
        self.n = end
        return F.scaled_dot_product_attention(q, self.k[:, :, :end], self.v[:, :, :end], attn_mask=seen)

def generate(model, heads, ids, count, pick):
    w = model.tokens.weight
    with torch.no_grad():
        caches = [Cache(len(ids), heads, max(count, 1), w.shape[1] // heads, w) for _ in model.blocks]
        new, at = ids, 0
        for _ in range(count):
            x = model.tokens(new) + model.places.weight[at : at + new.shape[1]]
            for block, cache in zip(model.blocks, caches):
                q, k, v = rearrange(block.attention.qkv(block.norm_1(x)), "b t (n h e) -> n b h t e", n=3, h=heads)
                x = x + block.attention.out(rearrange(cache.attend(q, k, v), "b h t e -> b t (h e)"))
                x = x + block.down(F.gelu(block.up(block.norm_2(x))))
            at += new.shape[1]
            new = pick(F.linear(model.norm(x[:, -1]), w))[:, None]
            ids = torch.cat([ids, new], 1)
    return ids

# %% wrong: nothing to write is an error, and picks are detached only (from the statement)
def generate(model, heads, ids, count, pick):
    keys, values = [[] for _ in model.blocks], [[] for _ in model.blocks]
    out, new, at = ids.clone(), ids, 0
    while True:
        x = model.tokens(new) + model.places(torch.arange(at, at + new.shape[1], device=ids.device))
        for n, block in enumerate(model.blocks):
            q, k, v = block.attention.qkv(block.norm_1(x)).chunk(3, dim=-1)
            q, k, v = (z.unflatten(-1, (heads, -1)).transpose(1, 2) for z in (q, k, v))
            keys[n].append(k)
            values[n].append(v)
            y = F.scaled_dot_product_attention(q, torch.cat(keys[n], 2), torch.cat(values[n], 2), is_causal=at == 0)
            x = x + block.attention.out(y.transpose(1, 2).flatten(2))
            x = x + block.down(F.gelu(block.up(block.norm_2(x))))
        at += new.shape[1]
        new = pick((model.norm(x)[:, -1] @ model.tokens.weight.T).detach())[:, None]
        out = torch.cat([out, new], dim=1)
        if out.shape[1] >= ids.shape[1] + count:
            return out

# %% wrong: scores scaled by the whole width (from the statement)
def generate(model, heads, ids, count, pick):
    keys, values = {}, {}
    with torch.no_grad():
        new, at = ids, 0
        for _ in range(count):
            t = new.shape[1]
            x = model.tokens(new) + model.places.weight[at : at + t]
            for n, block in enumerate(model.blocks):
                qkv = block.attention.qkv(block.norm_1(x)).view(len(ids), t, 3, heads, -1)
                q, k, v = qkv.permute(2, 0, 3, 1, 4)
                keys[n] = torch.cat([keys[n], k], 2) if n in keys else k
                values[n] = torch.cat([values[n], v], 2) if n in values else v
                scores = q @ keys[n].mT / x.shape[-1] ** 0.5
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(at + 1), float("-inf"))
                y = (scores.softmax(-1) @ values[n]).transpose(1, 2).flatten(2)
                x = x + block.attention.out(y)
                x = x + block.down(F.gelu(block.up(block.norm_2(x))))
            at += t
            new = pick(F.linear(model.norm(x[:, -1]), model.tokens.weight)).unsqueeze(1)
            ids = torch.cat([ids, new], 1)
    return ids

# %% wrong: switches gradients on again only at the end (from the statement)
# unseen: in the visible cases nothing raises an error
class KVCache:
    """Yours, from exercise 13.2: the keys and values of one layer."""

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        capacity: int,
        size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(
        self,
        q: Float[Tensor, "b h t e"],
        k: Float[Tensor, "b kv_heads t e"],
        v: Float[Tensor, "b kv_heads t e"],
    ) -> Float[Tensor, "b h t e"]:
        """Append k and v to what is stored, and attend causally to all of it."""
        start, t = self.length, q.shape[2]
        if start + t > self.keys.shape[2]:
            raise ValueError("the cache is full")
        self.keys[:, :, start : start + t] = k
        self.values[:, :, start : start + t] = v
        self.length += t
        groups = q.shape[1] // k.shape[1]
        mask = torch.ones(t, start + t, dtype=torch.bool, device=q.device).tril(start)
        y = F.scaled_dot_product_attention(
            rearrange(q, "b (k g) t e -> b k (g t) e", g=groups),
            self.keys[:, :, : self.length],
            self.values[:, :, : self.length],
            attn_mask=mask.repeat(groups, 1),
        )
        return rearrange(y, "b k (g t) e -> b (k g) t e", g=groups)



def generate(
    model: Any,
    heads: int,
    ids: Int[Tensor, "b t"],
    count: int,
    pick: Callable[[Float[Tensor, "b vocabulary"]], Int[Tensor, "b"]],
) -> Int[Tensor, "b t_and_count"]:
    """ids, followed by `count` more in each row, each picked from the logits at the last position."""
    recording = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    (b, t), table = ids.shape, model.tokens.weight
    size = table.shape[1] // heads
    caches = [
        KVCache(b, heads, t + count, size, table.dtype, table.device) for _ in model.blocks
    ]
    new = ids
    for _ in range(count):
        start = ids.shape[1] - new.shape[1]
        x = model.tokens(new) + model.places.weight[start : ids.shape[1]]
        for block, cache in zip(model.blocks, caches, strict=True):
            q, k, v = rearrange(
                block.attention.qkv(block.norm_1(x)), "b t (p h e) -> p b h t e", p=3, h=heads
            )
            x = x + block.attention.out(rearrange(cache.attend(q, k, v), "b h t e -> b t (h e)"))
            x = x + block.down(F.gelu(block.up(block.norm_2(x))))
        new = pick(F.linear(model.norm(x[:, -1]), table))[:, None]
        ids = torch.cat([ids, new], dim=1)
    torch.set_grad_enabled(recording)
    return ids

# %% right: the cache of 13.2 as it was written there, and the ids in one tensor
class KVCache:
    def __init__(self, batch, kv_heads, capacity, size, dtype=torch.float32, device="cpu"):
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def attend(self, q, k, v):
        start, end = self.length, self.length + q.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError("no room")
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        group = q.shape[1] // k.shape[1]
        grouped = rearrange(q, "b (kv g) t e -> b kv (g t) e", g=group)
        seen = torch.ones(end - start, end, dtype=torch.bool, device=q.device).tril(start).repeat(group, 1)
        y = F.scaled_dot_product_attention(grouped, self.keys[:, :, :end], self.values[:, :, :end], attn_mask=seen)
        return rearrange(y, "b kv (g t) e -> b (kv g) t e", g=group)

@torch.no_grad()
def generate(model, heads, ids, count, pick):
    b, t = ids.shape
    weight = model.tokens.weight
    out = torch.empty(b, t + count, dtype=torch.int64, device=ids.device)
    out[:, :t] = ids
    caches = [KVCache(b, heads, max(t + count - 1, 0), weight.size(1) // heads, weight.dtype, weight.device) for _ in model.blocks]
    begin = 0
    for end in range(t, t + count):
        x = model.tokens(out[:, begin:end]) + model.places.weight[begin:end]
        for block, cache in zip(model.blocks, caches):
            q, k, v = rearrange(block.attention.qkv(block.norm_1(x)), "b t (n h e) -> n b h t e", n=3, h=heads)
            x = x + block.attention.out(rearrange(cache.attend(q, k, v), "b h t e -> b t (h e)"))
            x = x + block.down(F.gelu(block.up(block.norm_2(x))))
        out[:, end] = pick(model.norm(x)[:, -1] @ weight.T)
        begin = end
    return out

# %% right: keys and values are concatenated, attention by hand
def generate(model, heads, ids, count, pick):
    past = [None for _ in model.blocks]

    def attend(number, block, x):
        b, t, d = x.shape
        q, k, v = (part.view(b, t, heads, d // heads).transpose(1, 2) for part in block.attention.qkv(x).chunk(3, dim=-1))
        if past[number] is not None:
            k, v = torch.cat([past[number][0], k], 2), torch.cat([past[number][1], v], 2)
        past[number] = k, v
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // heads)
        future = torch.full((t, k.shape[2]), -math.inf, dtype=x.dtype, device=x.device).triu(k.shape[2] - t + 1)
        return block.attention.out(((scores + future).softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def logits(new, start):
        x = model.tokens(new) + model.places(torch.arange(start, start + new.shape[1], device=new.device))
        for number, block in enumerate(model.blocks):
            x = x + attend(number, block, block.norm_1(x))
            x = x + block.down(F.gelu(block.up(block.norm_2(x))))
        return F.linear(model.norm(x), model.tokens.weight)[:, -1]

    columns = list(ids.split(1, dim=1))
    with torch.inference_mode():
        for number in range(count):
            new, start = (ids, 0) if number == 0 else (columns[-1], len(columns) - 1)
            columns.append(pick(logits(new, start)).unsqueeze(-1))
    return torch.hstack(columns)

# %% right: the prompt token by token, with functional norms and products
def generate(model, heads, ids, count, pick):
    def norm(x, layer):
        return F.layer_norm(x, x.shape[-1:], layer.weight, layer.bias, layer.eps)

    keys, values = [[] for _ in model.blocks], [[] for _ in model.blocks]
    columns, total = list(ids.unbind(1)), ids.shape[1] + count
    with torch.no_grad():
        for place in range(total - 1 if count else 0):
            x = model.tokens.weight[columns[place]] + model.places.weight[place]
            for n, block in enumerate(model.blocks):
                q, k, v = F.linear(norm(x, block.norm_1), block.attention.qkv.weight).unflatten(1, (3, heads, -1)).unbind(1)
                keys[n].append(k)
                values[n].append(v)
                scores = torch.stack([(q * key).sum(-1) for key in keys[n]], -1) / q.shape[-1] ** 0.5
                shares = scores.softmax(-1)
                y = sum(shares[..., i, None] * value for i, value in enumerate(values[n]))
                x = x + F.linear(y.flatten(1), block.attention.out.weight)
                x = x + F.linear(F.gelu(F.linear(norm(x, block.norm_2), block.up.weight)), block.down.weight)
            if place >= ids.shape[1] - 1:
                columns.append(pick(F.linear(norm(x, model.norm), model.tokens.weight)))
    return torch.stack(columns, 1)

# %% right: PyTorch's own causal bias
from torch.nn.attention.bias import causal_lower_right


def generate(model: Any, heads: int, ids: Any, count: int, pick: Any) -> Any:
    def memory() -> Callable[..., Tensor]:
        past: list[Tensor] = []

        def attend(q: Tensor, *new: Tensor) -> Tensor:
            past[:] = [torch.cat(pair, dim=2) for pair in zip(past, new)] if past else new
            bias = causal_lower_right(q.shape[2], past[0].shape[2])
            return F.scaled_dot_product_attention(q, *past, attn_mask=bias if q.shape[2] > 1 else None)

        return attend

    def forward(new: Tensor, start: int) -> Tensor:
        x = model.tokens(new) + model.places(torch.arange(start, start + new.shape[1], device=new.device))
        for block, attend in zip(model.blocks, memories):
            qkv = rearrange(block.attention.qkv(block.norm_1(x)), "b t (p h e) -> p b h t e", p=3, h=heads)
            x = x + block.attention.out(rearrange(attend(*qkv), "b h t e -> b t (h e)"))
            x = x + block.down(F.gelu(block.up(block.norm_2(x))))
        return model.norm(x)[:, -1] @ model.tokens.weight.mT

    out = F.pad(ids, (0, count))
    t = ids.shape[1]
    memories = [memory() for _ in model.blocks]
    with torch.inference_mode():
        for end in range(t, t + count):
            start = 0 if end == t else end - 1
            out[:, end] = pick(forward(out[:, start:end].clone(), start))
    return out

# %% right: a generator makes the columns
def generate(model, heads, ids, count, pick):
    def attend(past, q, k, v):
        past[:] = [torch.cat(pair, dim=2) for pair in zip(past, (k, v))] if past else [k, v]
        return F.scaled_dot_product_attention(q, *past, is_causal=q.size(2) > 1)

    def layer(block, past, x):
        b, t, d = x.shape
        qkv = block.attention.qkv(block.norm_1(x)).unflatten(-1, (3, heads, d // heads))
        y = attend(past, *qkv.permute(2, 0, 3, 1, 4))
        x = x + block.attention.out(y.transpose(1, 2).reshape(b, t, d))
        return x + block.down(F.gelu(block.up(block.norm_2(x))))

    def columns():
        pasts, new, seen = [[] for _ in model.blocks], ids, 0
        for _ in range(count):
            with torch.no_grad():
                x = model.tokens(new) + model.places.weight.narrow(0, seen, new.size(1))
                seen += new.size(1)
                for block, past in zip(model.blocks, pasts):
                    x = layer(block, past, x)
                new = pick(model.norm(x)[:, -1].matmul(model.tokens.weight.mT)).unsqueeze(1)
            yield new

    return torch.cat((ids, *columns()), dim=1)

# %% equivalent: torch.zeros → torch.ones
# why: what no token has been stored in is never read

# %% equivalent: ids.shape[1] + count → ids.shape[1] * count
# why: with one token or more of each, that is still room for all that are processed

# %% equivalent: zip(model.blocks, caches, strict=True) → zip(model.blocks, caches)
# why: there are as many caches as blocks

# %% equivalent: True → False
# why: there are as many caches as blocks
