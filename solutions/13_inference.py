# %% [markdown]
r"""
# 13 · Inference

[← 12 · Scale](../12_scale/12_scale.ipynb) &nbsp;|&nbsp; [14 · Capstone: train a small Transformer
→](../14_capstone/14_capstone.ipynb)

> **How many tokens per second can a model generate, and what is it waiting for?**

So far, this course has been about training. Once a model is trained, people use it: they send a prompt, and the model
generates an answer, one token at a time. Using a trained model without changing it is called **inference**, and its
arithmetic looks different. A card that easily holds a model can spend almost all of its time waiting for memory.

In this lecture you'll write the cache that makes generation affordable, and count its bytes exactly. Then you'll work
out how fast a model can generate text, how many users can share a card, and what you gain by storing weights in fewer
bits. By the end you'll have predicted how many tokens per second a small model generates on *your* machine, with your
own cache, and measured it.
"""

# %%
import copy
import math
import os
import time
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int, Int8
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_utils import device as devices
from course_utils import hardware, plots, timing
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.predict import reconcile
from course_utils.progress import show_progress
from course_utils.units import readable
from course_utils.testing import check

device = devices.pick_device()
print(devices.describe(device))
show_progress()

# %% [markdown]
r"""
## 1 · Prefill and decode

A language model predicts one token. To get a whole answer, you call it in a loop: the logits at the last position say
which token should come next, you append that token to the text, and you call the model again. In this lecture (except
in section 6) we always take the token with the largest logit, which is called **greedy decoding**. It involves no
randomness, so two correct programs generate the same text (unless two logits are so close that rounding decides between
them). In lecture 09, we drew the next token at random instead, with a temperature.

Here's the model. It's the Transformer of lecture 08, with PyTorch's fused attention and two additions: query heads can
share keys and values (section 2), and you can pass it a cache for each layer (section 3). You can ignore both for now.
"""


# %%
class Attention(nn.Module):
    """Causal self-attention; heads / kv_heads neighboring query heads share a key-value head."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.size = width // heads  # e, the length of a head's vectors
        self.q = nn.Linear(width, heads * self.size, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"], cache: Any = None) -> Float[Tensor, "b t d"]:
        """What each token collects from itself and from the tokens before it."""
        q, k, v = (
            rearrange(part, "b t (h e) -> b h t e", e=self.size)
            for part in (self.q(x), *self.kv(x).chunk(2, dim=-1))
        )
        if cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            y = cache.attend(q, k, v)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))


class Block(nn.Module):
    """One layer: attention, then feed-forward, each after a norm."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads, kv_heads)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"], cache: Any = None) -> Float[Tensor, "b t d"]:
        x = x + self.attention(self.norm_1(x), cache)
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Transformer(nn.Module):
    """A language model: embeddings of tokens and positions, blocks, a norm, a head."""

    def __init__(
        self, vocabulary: int, context: int, width: int, layers: int, heads: int, kv_heads: int
    ) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, kv_heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.kv_heads, self.size = kv_heads, width // heads

    def forward(
        self, ids: Int[Tensor, "b t"], caches: list[Any] | None = None
    ) -> Float[Tensor, "b t vocabulary"]:
        """Logits at the positions of ids, which come after the tokens in the caches."""
        start = caches[0].length if caches else 0
        x = self.tokens(ids) + self.places.weight[start : start + ids.shape[1]]
        for block, cache in zip(self.blocks, caches or [None] * len(self.blocks), strict=True):
            x = block(x, cache)
        return self.head(self.norm(x))

    def new_caches(self, batch: int, capacity: int) -> list[Any]:
        """An empty cache for each layer, with room for `capacity` tokens in each sequence."""
        sizes, weight = (batch, self.kv_heads, capacity, self.size), self.head.weight
        return [KVCache(*sizes, weight.dtype, weight.device) for _ in self.blocks]


def make_model(kv_heads: int = 2, width: int = 64) -> Transformer:
    """A small model with random weights, the same each time."""
    torch.manual_seed(0)
    return Transformer(64, 128, width, 2, 8, kv_heads).to(device).eval()


# %% [markdown]
r"""
Its weights are random, so it will generate nonsense; but the cost is the same, whatever the text. Here's the loop in
its simplest form. It passes the whole text through the model each time, and counts the tokens that it processes.
"""


# %%
@torch.no_grad()
def generate_plainly(
    model: nn.Module, ids: Int[Tensor, "b t"], count: int
) -> tuple[Tensor, int]:
    """ids, then `count` more in each row by greedy decoding; and how many tokens were processed."""
    processed = 0
    for _ in range(count):
        logits = model(ids)
        processed += ids.numel()
        ids = torch.cat([ids, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return ids, processed


model = make_model()
prompt = torch.arange(64, device=device)[None]  # one sequence of 64 tokens
plain, processed = generate_plainly(model, prompt, 64)
assert plain.shape == (1, 128)

# %% [markdown]
r"""
That's wasteful. Attention is causal, so a token never sees the tokens after it: when you append one, nothing changes in
the computation for the earlier ones. It would be enough to process each token *once*, as long as the later tokens can
still attend to it. The very last token needn't be processed at all, since nobody asks what comes after it.

**Predict.** The loop generated 64 tokens after a prompt of 64. What's the ratio of the tokens that it processed to
those that it needed to process?
"""

# %%
guess = None  # times

# %%
# Each token once, against the loop's
needed = 64 + 63  # the prompt, and all new tokens except the last
reconcile("tokens processed, relative to those needed", guess, processed / needed, "times")
assert processed == sum(range(64, 128)) == 6_112
assert round(processed / needed) == 48

# %% [markdown]
r"""
The longer the text, the greater the waste, because the number of tokens processed is a sum like $1 + 2 + \dots + n$ and
grows with the square of the length. If every token is processed only once, generation has two very different phases:

- **Prefill** is the first call, which processes the whole prompt at once. Its last logits give the first new token. It
  determines how long a user waits before anything appears, the *time to first token*.
- **Decode** is every call after that, each with a single new token for each sequence. It determines how fast the text
  appears from then on.

Both use the same weights. But in prefill, each weight is used for hundreds or thousands of tokens at once, and in
decode for just one token of each sequence.

*Try it yourself:* how does the ratio of tokens processed to tokens needed change if the prompt has 1 token and the
model generates 127? And with a prompt of 127 and 1 new token?

## 2 · The cache, to the byte

What do later tokens need from an earlier one? In each layer, they compare their queries with its key, and its value
goes into their weighted averages. Nothing else from that token is used again, not even its query. So it's enough to
keep keys and values: that's the KV cache of lecture 04. In each layer, one token of one sequence adds

$$2 \cdot h_{kv} \cdot e \text{ numbers,}$$

a key and a value, for $h_{kv}$ heads with vectors of length $e$. In multi-head attention, every one of the $h$ query
heads has its own keys and values, so $h_{kv} = h$. Since the cache can become large, people have looked for ways to
keep less:

- In **multi-query attention**, all query heads share a single head of keys and values, so $h_{kv} = 1$ (Shazeer, 2019,
  arXiv:1911.02150).
- In **grouped-query attention**, each group of neighboring query heads shares one head of keys and values, so $h_{kv}$
  is between 1 and $h$ (Ainslie and others, 2023, arXiv:2305.13245). Llama 3.1 has 8 key-value heads in all three sizes.
- In **multi-head latent attention**, the cache has one *latent* vector of $c$ numbers per token and layer, from which
  the keys and values of all heads can be computed. One more vector of $r$ numbers, shared by all heads, encodes the
  position. That's $c + r$ numbers, without the factor of 2 (DeepSeek-V2, 2024, arXiv:2405.04434).

### Exercise 13.1 · The bytes of a cache &nbsp; ★☆☆ &nbsp; essential &nbsp; 10 minutes

Write `kv_cache_bytes(kind, layers, heads, size, batch, context, number_bytes)`, which returns the bytes of the whole
cache, for `batch` sequences of `context` tokens. `kind` is `"multi-head"`, `"grouped-query"`, `"multi-query"` or
`"latent"`. There are `heads` query heads with vectors of length `size`, and each number of the cache takes
`number_bytes`, which is an integer. Two more arguments are used by one kind each, and ignored by the others: `kv_heads`
is the number of key-value heads of grouped-query attention, and `latent` is the pair $(c, r)$. Raise `ValueError` for
any other kind. All sizes that the kind uses are positive integers, so the result is an integer as well, however large
it is.
"""


# %% nbgrader={"grade": false, "grade_id": "kv_cache_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def kv_cache_bytes(
    kind: str,
    layers: int,
    heads: int,
    size: int,
    batch: int,
    context: int,
    number_bytes: int,
    *,
    kv_heads: int = 1,
    latent: tuple[int, int] = (0, 0),
) -> int:
    """Bytes of the keys and values (or latent vectors) of batch · context tokens in all layers."""
    ### BEGIN SOLUTION
    if kind == "latent":
        numbers = sum(latent)
    elif kind == "multi-head":
        numbers = 2 * heads * size
    elif kind == "grouped-query":
        numbers = 2 * kv_heads * size
    elif kind == "multi-query":
        numbers = 2 * size
    else:
        raise ValueError(f"unknown kind of attention: {kind}")
    return layers * batch * context * number_bytes * numbers
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_kv_cache_bytes", "locked": true}
check("kv_cache_bytes")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Count the numbers that one token adds in one layer; only this depends on the kind. How many tokens are there in all, and in how many layers does each of them leave something?</details>
<details><summary>Hint 2</summary>A key and a value are two vectors of the same length. A latent vector isn't a pair: keys and values are both computed from it.</details>

**Why it matters.** You'll soon see that the cache limits how many users can share a card.

Take Llama 3.1 8B, with weights and cache in bfloat16. It has 8.03 billion parameters in 32 layers, 32 query heads with
vectors of length 128, and 8 key-value heads.

**Predict.** How many tokens can a single sequence have before its cache takes more bytes than all the parameters?
"""

# %%
guess = None  # tokens

# %%
shape = {
    name: int(FACTS[f"Llama 3.1 8B {name}"].value)
    for name in ("layers", "width", "heads", "key and value heads", "parameters")
}
layers, width, heads = shape["layers"], shape["width"], shape["heads"]
size, kv_heads = width // heads, shape["key and value heads"]
assert (layers, heads, size, kv_heads) == (32, 32, 128, 8)
assert all(FACTS[f"Llama 3.1 {n} key and value heads"].value == 8 for n in ("70B", "405B"))

of_a_token = kv_cache_bytes("grouped-query", layers, heads, size, 1, 1, 2, kv_heads=kv_heads)
parameter_bytes = 2 * shape["parameters"]
reconcile(
    "the cache outgrows the parameters at", guess, parameter_bytes // of_a_token, "tokens"
)
assert of_a_token == 131_072  # 128 KiB
assert 122_000 < parameter_bytes / of_a_token < FACTS["Llama 3.1 maximum context"].value

# %% [markdown]
r"""
A cache belongs to one user alone. The next cell plots its size for all four kinds of attention, for a model of this
shape. (The latent vectors are those of DeepSeek-V3, with $c = 512$ and $r = 64$.)
"""

# %%
latent = tuple(int(FACTS[f"DeepSeek-V3 {part}"].value) for part in ("kv rank", "rope width"))
assert latent == (512, 64)
contexts = [2_048 * 4**i for i in range(4)]
kinds: dict[str, dict[str, Any]] = {
    "multi-head": {},
    "grouped-query": {"kv_heads": kv_heads},
    "latent": {"latent": latent},
    "multi-query": {},
}
lines = {
    kind: [
        kv_cache_bytes(kind, layers, heads, size, 1, context, 2, **more) for context in contexts
    ]
    for kind, more in kinds.items()
}
lines["all parameters"] = [parameter_bytes] * len(contexts)
finding = (
    "One sequence's cache for Llama 3.1 8B's shape: up to 32 times smaller than multi-head"
)
plots.show(
    plots.curves(
        contexts, {}, lines, xlabel="context (tokens)", ylabel="bytes", yunit="B", title=finding
    ),
    alt=f"{finding}. Four rising lines against the context and a level one for the parameters. Multi-head attention "
    "crosses the level line first, grouped-query attention at a context four times as long; latent and multi-query "
    "attention stay below it.",
)
for kind, more in kinds.items():
    per_token = kv_cache_bytes(kind, layers, heads, size, 1, 1, 2, **more)
    print(f"{kind:>13}: {per_token:>7,} B per token")
assert lines["multi-head"][0] == 4 * lines["grouped-query"][0] == 32 * lines["multi-query"][0]

# %% [markdown]
r"""
Llama 3.1 8B accepts 131,072 tokens. A user who fills that context has a cache that's larger than the model.

DeepSeek-V3 itself has 61 layers and 128 heads. With multi-head attention and vectors of length 128, each token would
take 4 MB. Its latent vectors take 70 kB, a 57th of that. The model has 84 times as many parameters as Llama 3.1 8B, but
a token takes about half as much cache.
"""

# %%
deep, many, long = (
    int(FACTS[f"DeepSeek-V3 {what}"].value) for what in ("layers", "heads", "head width")
)
as_latent = kv_cache_bytes("latent", deep, many, long, 1, 1, 2, latent=(512, 64))
as_multi_head = kv_cache_bytes("multi-head", deep, many, long, 1, 1, 2)
print(f"latent: {as_latent:,} B per token, multi-head: {as_multi_head:,} B")
assert (deep, many, long) == (61, 128, 128)
assert round(as_latent, -4) == 70_000 and round(as_multi_head / 1e6) == 4
assert round(as_multi_head / as_latent) == 57 and round(as_latent / of_a_token, 1) == 0.5
assert round(FACTS["DeepSeek-V3 parameters"].value / shape["parameters"]) == 84

# %% [markdown]
r"""
*Try it yourself:* how many bytes does each token take if the cache is in an 8-bit format, such as those of lecture 02?

## 3 · A cache that works

Now write the cache. A simple one would append to its tensors with `torch.cat`, but that copies the whole cache for each
new token. Instead, you'll reserve the memory first, and write each token into the next free slot.

### Exercise 13.2 · The cache, and attention through it &nbsp; ★★★ &nbsp; essential &nbsp; 25 minutes

Write `KVCache`, the cache of *one* layer. The constructor takes `batch`, `kv_heads`, `capacity` (the number of tokens
that each sequence has room for), `size` (the length of a head's vectors), `dtype` and `device`. It makes two tensors of
shape `[batch, kv_heads, capacity, size]`, `self.keys` and `self.values`, with that dtype on that device. `self.length`
is the number of tokens that each sequence has stored so far: 0 at first. Lowering it makes the cache forget its last
tokens, and the next ones are stored in their place.

`attend(q, k, v)` takes the queries, keys and values of $t \ge 1$ new tokens, `[b, h, t, e]` for the queries and `[b,
kv_heads, t, e]` for the others. It stores the keys and values after those that are already there, and returns the
result of causal attention, `[b, h, t, e]`: each new token attends to all tokens that were stored before, to the new
ones before it, and to itself. $h$ is a multiple of `kv_heads`, and neighboring query heads share a key-value head: with
$h = 8$ and two key-value heads, query heads 0 to 3 use the first, and 4 to 7 the second. Divide the scores by
$\sqrt{e}$.

The two tensors stay where they are, and `attend` doesn't copy what is stored: when it's called with one new token, $e$
is 64, at most 8 query heads share a key-value head, and the cache already holds at least a hundred tokens, no tensor
that `attend` creates may take more than a fifth of the bytes of `keys` and `values` together. If there's no room for
all the new tokens, raise `ValueError` and store none of them. All arguments have the cache's dtype and device, and
nothing needs a gradient. You may use PyTorch's attention; just remember the trap of lecture 04: with `is_causal=True`,
it puts the queries at the *first* positions.
"""


# %% nbgrader={"grade": false, "grade_id": "KVCache", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
        ### BEGIN SOLUTION
        self.keys = torch.zeros(batch, kv_heads, capacity, size, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0
        ### END SOLUTION

    def attend(
        self,
        q: Float[Tensor, "b h t e"],
        k: Float[Tensor, "b kv_heads t e"],
        v: Float[Tensor, "b kv_heads t e"],
    ) -> Float[Tensor, "b h t e"]:
        """Append k and v to what is stored, and attend causally to all of it."""
        ### BEGIN SOLUTION
        start, end = self.length, self.length + q.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError("the cache has no room for all of them")
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        group = q.shape[1] // k.shape[1]
        # The queries of a group lie side by side, as if they were more tokens: nothing is repeated.
        grouped = rearrange(q, "b (kv g) t e -> b kv (g t) e", g=group)
        seen = torch.ones(end - start, end, dtype=torch.bool, device=q.device).tril(start)
        keys, values = self.keys[:, :, :end], self.values[:, :, :end]
        y = F.scaled_dot_product_attention(
            grouped, keys, values, attn_mask=seen.repeat(group, 1)
        )
        return rearrange(y, "b kv (g t) e -> b (kv g) t e", g=group)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_KVCache", "locked": true}
check("KVCache")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>With <code>start</code> tokens stored, new token i stands at position start + i, so it sees the first start + i + 1 keys. <code>torch.ones(t, start + t, dtype=torch.bool, device=q.device).tril(start)</code> has a row for each new token. <code>attn_mask</code> takes such a mask; it has to be Boolean, since numbers would be added to the scores.</details>
<details><summary>Hint 2</summary>Repeating the keys for each query head would copy the cache. Look at it the other way around: the g query heads that share a key-value head could be g times as many queries in one head. <code>rearrange</code> can merge and split them. (Which rows does the mask have then?)</details>

**Why it matters.** With this cache, the next token takes a forward pass over a single token instead of over the whole
text. The Transformer above can already use it: given a list of caches, it passes each layer its own, and its positions
begin where the cache ends.

Are its logits the same with a cache as without one? We process 64 tokens, then 1, then 7, and compare all their
logits with those of a single pass without a cache. (We use `float64`, so that a real difference can't hide behind
rounding.) We do this with 8, 2 and 1 key-value heads, and compare the bytes with your formula.
"""

# %%
text = torch.randint(0, 64, (3, 72), generator=torch.Generator().manual_seed(1))
# an Apple GPU has no float64
precise = torch.float32 if device.type == "mps" else torch.float64
for groups, kind in ((8, "multi-head"), (2, "grouped-query"), (1, "multi-query")):
    exact = make_model(kv_heads=groups).to(precise)
    caches = exact.new_caches(batch=3, capacity=72)
    with torch.no_grad():
        whole = exact(text.to(device))
        pieces = torch.cat(
            [exact(part.to(device), caches) for part in text.split((64, 1, 7), dim=1)], dim=1
        )
    gap = (pieces - whole).abs().max().item()
    kept = sum(t.nbytes for cache in caches for t in (cache.keys, cache.values))
    formula = kv_cache_bytes(kind, 2, 8, 8, 3, 72, precise.itemsize, kv_heads=groups)
    print(f"{kind:>13}: {kept:,} B, as predicted; logits differ by at most {gap:.0e}")
    assert kept == formula
    assert gap < (1e-9 if precise == torch.float64 else 1e-3)

# %% [markdown]
r"""
> **Trap: every token is the first.** Position information has to continue where the cache ends. If the model gives each
> new token position 0, it still runs and still generates something. A comparison with the same model without a cache
> reveals it:
"""

# %%
exact = make_model().to(precise)
caches = exact.new_caches(batch=3, capacity=72)
with torch.no_grad():
    exact(text[:, :64].to(device), caches)
    place = exact.places.weight[64].clone()
    exact.places.weight[64] = exact.places.weight[0]  # as if the new token were the first
    wrong = exact(text[:, 64:65].to(device), caches)
    exact.places.weight[64] = place
    right = exact(text[:, :65].to(device))[:, -1:]
print(f"largest logit {right.max():.1f}, off by up to {(wrong - right).abs().max():.1f}")
assert (wrong - right).abs().max() > 0.5

# %% [markdown]
r"""
### Exercise 13.3 · Generate with the cache &nbsp; ★★☆ &nbsp; essential &nbsp; 15 minutes

Write `generate_cached(model, ids, count)`, which returns the ids `[b, t]`, followed by `count` more in each row by
greedy decoding, `[b, t + count]`. It should return the tokens that `generate_plainly` returns, but process each token
only once.

`model.new_caches(batch, capacity)` makes the caches. Ask for exactly as much room as you need, and no more: with large
caches, every token counts. `model(ids, caches)` returns the logits `[b, t, vocabulary]` of the ids that you pass,
stores their keys and values, and works out their positions from the caches. So first pass the whole prompt, and then
each new token alone, as `[b, 1]`, for all rows at once. Don't process the last one, because nothing follows it. Record
nothing for a backward pass. `ids` is `int64`, has at least one row and one column, and mustn't change. `count` may
be 0, and then you shouldn't call the model at all. (The model is in eval mode already.)
"""


# %% nbgrader={"grade": false, "grade_id": "generate_cached", "locked": false, "schema_version": 3, "solution": true, "task": false}
def generate_cached(
    model: Any, ids: Int[Tensor, "b t"], count: int
) -> Int[Tensor, "b t_and_count"]:
    """ids, then `count` more in each row: prefill once, then decode token by token."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        caches = model.new_caches(len(ids), ids.shape[1] + count - 1)
        new = ids
        for _ in range(count):
            new = model(new, caches)[:, -1].argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, new], dim=1)
    return ids
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_generate_cached", "locked": true}
check("generate_cached")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>How many times do you call the model for <code>count</code> new tokens? And how many tokens does it process in all?</details>
<details><summary>Hint 2</summary>Prefill and decode can be the same line in a loop: what you pass is the prompt in the first round, and the newest column in all later ones. <code>keepdim=True</code> keeps that column a column.</details>

**Why it matters.** This loop is the core of an inference server. Compared with the plain loop, it generates the same
tokens for a fraction of the FLOPs:
"""

# %%
cached = generate_cached(model, prompt, 64)
assert torch.equal(cached, plain)  # token for token
with torch.device("meta"):
    shapes_only = Transformer(64, 128, 64, 2, 8, 2).eval()
    ids = torch.zeros(1, 64, dtype=torch.int64)
work = {
    "plain": count_flops(lambda: generate_plainly(shapes_only, ids, 64)),
    "cached": count_flops(lambda: generate_cached(shapes_only, ids, 64)),
}
ratio = work["plain"] / work["cached"]
print(f"the same 128 tokens; {ratio:.0f} times fewer FLOPs with the cache")
assert ratio > 48  # the ratio of the token counts; attention saves even more

# %% [markdown]
r"""
*Try it yourself:* give the caches room for one token fewer than your function asks for. Which call fails?

## 4 · What a step waits for

Prefill and one step of decoding are each a forward pass of the same model, so one formula covers both. A pass processes
`new` tokens in each of `batch` sequences, and at the end each sequence has `context` tokens, the new ones included. Two
things take time:

- *Arithmetic.* Each new token takes 2 FLOPs for each weight that multiplies something (all except the embeddings).
  Attention takes another $4 \cdot L \cdot d \cdot \text{context}$ for each new token, for $L$ layers whose heads'
  vectors have $d$ numbers altogether (lecture 05). By the usual convention, we count what the causal mask hides, too,
  so for a prefill the result is a few percent more than necessary.
- *Memory.* All weights are read once, no matter how many tokens there are. Each sequence's cache is read once, too,
  with all of its `context` tokens.

Arithmetic and memory work at the same time, so the slower one determines how long the pass takes. This is the roofline
of lecture 05 again. There it was an upper bound on the speed; here it's a lower bound on the time.

### Exercise 13.4 · How long a pass takes &nbsp; ★★☆ &nbsp; essential &nbsp; 10 minutes

Write `forward_seconds(model, batch, new, context, peak, bandwidth)`, which returns the seconds that the slower of the
two takes, arithmetic or memory. `peak` is in FLOP/s and `bandwidth` in bytes per second. `model` is a dict:

| key | what it contains |
|---|---|
| `"weights"` | the number of weights that multiply something |
| `"weight_bytes"` | the bytes of all of them |
| `"layers"`, `"width"` | $L$ and $d$ |
| `"token_bytes"` | the bytes of the cache for one token of one sequence |

All numbers are positive, and `new` is at most `context`. `peak` or `bandwidth` may be infinite (`math.inf`).
"""


# %% nbgrader={"grade": false, "grade_id": "forward_seconds", "locked": false, "schema_version": 3, "solution": true, "task": false}
def forward_seconds(
    model: dict[str, float], batch: int, new: int, context: int, peak: float, bandwidth: float
) -> float:
    """Seconds that a forward pass takes at least: for its FLOPs, or for its bytes."""
    ### BEGIN SOLUTION
    per_token = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context
    flops = batch * new * per_token
    moved = model["weight_bytes"] + batch * context * model["token_bytes"]
    return max(flops / peak, moved / bandwidth)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_forward_seconds", "locked": true}
check("forward_seconds")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>Work out two numbers separately: all FLOPs, and all bytes. Which of <code>batch</code>, <code>new</code> and <code>context</code> does each part depend on?</details>
<details><summary>Hint 2</summary>The FLOPs: per new token first, then times how many new tokens there are in all. The bytes: the weights once, plus what all sequences have in their caches.</details>

**Why it matters.** With this function, you know what to expect from a model on a card before you rent it.

Let's apply it to Llama 3.1 8B on an H100, which reads 3.35 TB/s and computes 989 TFLOP/s in bfloat16. One detail: a
step reads only one row of the token embedding table, the row of its token. So the table, 525 million of the parameters,
has to be stored, but almost none of it is read.

**Predict.** With 2,048 tokens of context, what's the least time that one decode step for a single sequence can take, in
milliseconds?
"""

# %%
guess = None  # milliseconds

# %%
vocabulary = int(FACTS["Llama 3.1 vocabulary"].value)
read = shape["parameters"] - vocabulary * width
llama: dict[str, float] = {
    "weights": read,
    "weight_bytes": 2 * read,
    "layers": layers,
    "width": width,
    "token_bytes": of_a_token,
}
h100 = hardware.ACCELERATORS["H100 SXM"]
card = (h100.peak[torch.bfloat16], h100.bandwidth)

decode = forward_seconds(llama, 1, 1, 2_048, *card)
reconcile("one decode step", guess, 1e3 * decode, "ms")
print(f"at most {1 / decode:.0f} tokens per second")
assert round(vocabulary * width / 1e6) == 525
assert round(1e3 * decode, 2) == 4.56 and math.floor(1 / decode) == 219
all_parameters = (parameter_bytes + 2_048 * of_a_token) / h100.bandwidth
assert round(1e3 * all_parameters, 2) == 4.87

# %% [markdown]
r"""
No kernel, however clever, can do a step in less time, because the bytes have to be read. The arithmetic alone would
take less than a 280th of that. (A common rule takes the bytes of *all* parameters, the table of the token embedding
included. With the cache added, it gives 4.87 ms.)

**Predict.** Now the prefill: a prompt of 2,048 tokens, in one pass. By your formula, how many times as long does it
take as that decode step?
"""

# %%
guess = None  # times

# %%
prefill = forward_seconds(llama, 1, 2_048, 2_048, *card)
reconcile("prefill of 2,048 tokens, against one decode step", guess, prefill / decode, "times")
print(f"prefill {readable(prefill, 's')}, or {readable(prefill / 2_048, 's')} per token")
assert round(1e3 * prefill, 1) == 33.3 and round(prefill / decode, 1) == 7.3
without_bytes = forward_seconds(llama, 1, 1, 2_048, card[0], math.inf)
assert round(decode / without_bytes) == 281
per_byte = (2 * read + 4 * layers * width * 2_048) / (decode * h100.bandwidth)
assert round(per_byte) == 1  # FLOP per byte of the decode step
without_flops = forward_seconds(llama, 1, 2_048, 2_048, math.inf, card[1])
assert math.isclose(without_flops, decode) and prefill > 7 * without_flops

# %% [markdown]
r"""
Prefill reads exactly the same bytes as the decode step, but uses each weight 2,048 times, so it's compute-bound. The
decode step does about one FLOP per byte, so it's memory-bound.

What do real systems achieve? Here are three published measurements for a single sequence. Two are from the
documentation of [torchao](https://github.com/pytorch/ao/blob/v0.13.0/torchao/quantization/README.md), a PyTorch library
for quantization: Llama 3.1 8B on an H100 (the documentation doesn't say which version; we assume the SXM card) and
Llama 3 8B on an A100, both decoding with little context. The third is a prefill of 2,048 tokens through Llama 7B, with
NVIDIA's [TensorRT-LLM](https://github.com/NVIDIA/TensorRT-LLM/blob/v0.5.0/docs/source/performance.md) on an A100. (We
use the shapes of Llama 3.1 8B and Llama 2 7B, and assume the A100 with 80 GB.)
"""

# %%
a100 = hardware.ACCELERATORS["A100 SXM 80GB"]
old_width = int(FACTS["Llama 2 7B width"].value)
old = FACTS["Llama 2 7B parameters"].value - FACTS["Llama 2 vocabulary"].value * old_width
llama_2: dict[str, float] = {
    "weights": old,
    "weight_bytes": 2 * old,
    "layers": FACTS["Llama 2 7B layers"].value,
    "width": old_width,
    "token_bytes": kv_cache_bytes("multi-head", 32, 32, 128, 1, 1, 2),
}
bounds = {
    "decode, H100": forward_seconds(llama, 1, 1, 1, *card),
    "decode, A100": forward_seconds(llama, 1, 1, 1, a100.peak[torch.bfloat16], a100.bandwidth),
    "prefill, A100": forward_seconds(
        llama_2, 1, 2_048, 2_048, a100.peak[torch.float16], a100.bandwidth
    ),
}
published = {
    "decode, H100": 1 / FACTS["Llama 3.1 8B decode, H100, bfloat16"].value,
    "decode, A100": 1 / FACTS["Llama 3 8B decode, A100, bfloat16"].value,
    "prefill, A100": FACTS["Llama 7B prefill, A100, float16"].value,
}
finding = "Published times are 1.4 to 1.8 times the lower bounds, in both phases"
plots.show(
    plots.predicted_vs_measured(
        [(name, bounds[name], published[name], "s") for name in bounds],
        against="published",
        title=finding,
    ),
    alt=f"{finding}. Decode on two cards and prefill on one: the bound, and the published time.",
)
for name, least in bounds.items():
    print(
        f"{name}: at least {readable(least, 's')}, published {readable(published[name], 's')}"
    )
    assert 1.4 < published[name] / least < 1.8

# %% [markdown]
r"""
The published times are 1.4 to 1.8 times the bound: a formula that knows nothing about the software is right to within a
factor of two.

*Try it yourself:* up to which prompt length does the prefill on the H100 take no longer than a decode step with the
same context? Compare with the ridge point of lecture 05.

## 5 · Batching, and its limits

A decode step for one sequence leaves the arithmetic units idle. With **batching**, one step serves many sequences, and
the weights are read once for all of them. But each sequence has its own cache, and no other sequence can use it (unless
both begin with the same tokens).

**Predict.** Every sequence has 2,048 tokens of context. How many times as many tokens per second does the H100 generate
with 64 sequences as with one? (Llama 3.1 8B as before; a step takes 4.56 ms for one sequence, and reads 15.0 GB of
weights and 0.27 GB of cache.)
"""

# %%
guess = None  # times

# %%
together = forward_seconds(llama, 64, 1, 2_048, *card)
gain = 64 * decode / together
reconcile("tokens per second with 64 sequences, against one", guess, gain, "times")
print(f"a step takes {readable(together, 's')}: {64 / together:,.0f} tokens per second in all")
assert round(1e3 * decode, 2) == 4.56 and round(llama["weight_bytes"] / 1e9, 1) == 15.0
assert round(2_048 * of_a_token / 1e9, 2) == 0.27
assert round(gain) == 30 and round(together / decode, 1) == 2.1

ceiling = h100.bandwidth / (2_048 * of_a_token)
print(f"with ever more sequences: at most {ceiling:,.0f} tokens per second")
assert round(ceiling, -2) == 12_500
assert all(
    batch / forward_seconds(llama, batch, 1, 2_048, *card) < ceiling for batch in (64, 10**6)
)
flops_per_byte = (2 * read + 4 * layers * width * 2_048) / (2_048 * of_a_token)
assert round(flops_per_byte) == 60
assert round(card[0] / card[1], -2) == 300

# %% [markdown]
r"""
The whole batch generates more tokens per second, but each user waits longer for the next one: you pay for *throughput*
(tokens per second, over all users) with *latency* (here, the time that a user waits for the next token). And there's a
ceiling: with very many sequences the weights hardly matter, but for each token its sequence's cache of 0.27 GB still
has to be read, and 3.35 TB/s is enough to read 12,500 such caches per second.

You may have read that decoding becomes compute-bound at a batch of about 300, the ridge point of an H100. That's true
of the weights alone. With 2,048 tokens of context, even an infinite batch does only 60 FLOPs per byte, because the
caches grow with it. So decoding never becomes compute-bound here.

There's another limit: all those caches have to fit on the card.

### Exercise 13.5 · The largest batch &nbsp; ★★☆ &nbsp; 15 minutes

Write `largest_batch(model, context, room, seconds, peak, bandwidth)`, which returns the largest number of sequences,
each with `context` tokens, whose caches fit into `room` bytes (what the weights leave free) and whose decode step takes
at most `seconds` according to the formula of exercise 13.4. If even one sequence is too many, return 0. `model`, `peak`
and `bandwidth` are as in that exercise. `room` is an integer, at least 0; caches that take exactly `room` bytes still
fit. `seconds`, `peak` and `bandwidth` may be infinite (`math.inf`). No batch's time is so close to `seconds` that
rounding would matter. The answer may be in the billions, so don't try batch sizes one by one.
"""


# %% nbgrader={"grade": false, "grade_id": "largest_batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_batch(
    model: dict[str, float],
    context: int,
    room: int,
    seconds: float,
    peak: float,
    bandwidth: float,
) -> int:
    """How many sequences fit into memory and into the time of a decode step."""
    ### BEGIN SOLUTION
    cache = context * model["token_bytes"]
    flops = 2 * model["weights"] + 4 * model["layers"] * model["width"] * context
    by_memory = room // cache
    by_arithmetic = seconds * peak / flops
    by_bandwidth = (seconds * bandwidth - model["weight_bytes"]) / cache
    return max(0, math.floor(min(by_memory, by_arithmetic, by_bandwidth)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_largest_batch", "locked": true}
check("largest_batch")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>There are three limits: memory, arithmetic, bandwidth. Solve each for the batch alone; the smallest of the three decides.</details>
<details><summary>Hint 2</summary>For the bandwidth, first subtract what the weights take from the bytes that can be read in the given time. What if nothing is left?</details>

**Why it matters.** The cost of a token is the card's rent divided by the card's throughput, so the larger the batch,
the cheaper an answer.

Here are throughput and latency for batches of 1, 2, 4 and so on, up to the largest that fits on the H100 with Llama 3.1
8B, for four context lengths.
"""

# %%
room = int(FACTS["H100 SXM memory"].value) - parameter_bytes
figure = Figure(figsize=(8.9, 4.6), layout="constrained")
axes = figure.add_subplot(
    xlabel="time of a decode step, at least (ms)", ylabel="tokens per second, at most"
)
axes.set(xscale="log", yscale="log")
axes.spines[["top", "right"]].set_visible(False)
ends = {}
for context, marker in zip((512, 2_048, 8_192, 32_768), plots.MARKERS, strict=False):
    most = largest_batch(llama, context, room, math.inf, *card)
    batches = sorted({min(2**i, most) for i in range(12)})
    steps = [forward_seconds(llama, batch, 1, context, *card) for batch in batches]
    rates = [batch / step for batch, step in zip(batches, steps, strict=True)]
    axes.plot(
        [1e3 * step for step in steps], rates, color=plots.PREDICTED, marker=marker, mfc="none"
    )
    axes.annotate(
        f"{context:,} tokens each:\n{most:,} fit",
        (1e3 * steps[-1], rates[-1]),
        xytext=(8, -3),
        textcoords="offset points",
    )
    ends[context] = (most, rates[-1], rates[-1] / rates[0], steps[-1] / steps[0])
axes.set_xticks([5, 10, 20], ["5", "10", "20"])
axes.set_yticks([200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000],
                ["200", "500", "1,000", "2,000", "5,000", "10,000", "20,000", "40,000"])  # fmt: skip
axes.minorticks_off()
axes.set_xlim(4, 40)
more, longer = ends[2_048][2:]
finding = (
    f"A full batch with 2,048 tokens each gets {more:.0f} times as many tokens per second as one sequence,\n"
    f"and a step takes {longer:.1f} times as long"
)
figure.suptitle(finding, x=0.01, ha="left", size=11, weight="bold")
plots.show(
    figure,
    alt=f"{finding}. Throughput against the time of a step, on logarithmic axes, a curve for each context. All "
    "begin with one sequence; the longer the context, the earlier the curve bends and the lower it ends.",
)
assert ends[2_048][0] == 238 and ends[32_768][0] == 14
assert largest_batch(llama, 2_048, room, 10e-3, *card) == 68  # at most 10 ms per token
assert ends[512][1] > ends[2_048][1] > ends[8_192][1] > ends[32_768][1]

# %% [markdown]
r"""
With 2,048 tokens each, 238 sequences fit. If each user is to get 100 tokens per second, a step may take at most 10 ms,
and only 68 users can share the card. The explorer below uses the same formula and starts with your prediction's 64
sequences. How many fit with 16,384 tokens each? And which of the explorer's models gains least from a larger batch?
"""

# %%
from course_utils.explorers import decoding

decoding.explore("Llama 3.1 8B", "H100 SXM", batch=64, context=2_048).predicted(
    "tokens per second with 64 sequences, against one",
    "How many times as many tokens per second do 64 sequences get as one, with 2,048 tokens each?",
)

# %% [markdown]
r"""

In practice, two problems remain. Answers end at different times, so a server shouldn't wait for the longest one: in
*continuous batching*, a new request takes the place of a finished one right away
([Orca](https://www.usenix.org/conference/osdi22/presentation/yu); Yu and others, 2022). And nobody knows in advance how
long an answer will be, so reserving the full capacity, as your cache does, wastes memory. PagedAttention therefore
hands out memory in small blocks, as they are needed (Kwon and others, 2023, arXiv:2309.06180).

*Try it yourself:* at which context lengths does decoding on the H100 become compute-bound if the batch is large enough?
(Start with a context of 256.)

## 6 · Speculative decoding (optional)

What if there's only one user? Then there's nothing to batch, and a decode step leaves the arithmetic units idle. In
**speculative decoding**, a small *draft model* guesses the next few tokens, one after the other, and then the large
model, the *target*, processes all of them in a single pass (Leviathan and others, 2022, arXiv:2211.17192). That pass
returns the target's probabilities at every position, so it shows what the target thinks of each guess. According to the
formula of exercise 13.4, checking four guesses takes no longer than generating a single token. (The pass below has five
new tokens: the four guesses, and the token before them, which the target hasn't processed yet.)
"""

# %%
checking = forward_seconds(llama, 1, 5, 2_048, *card)
print(f"1 new token: {readable(decode, 's')}; 5 new tokens: {readable(checking, 's')}")
assert math.isclose(checking, decode)

# %% [markdown]
r"""
With greedy decoding, it's clear which guesses to keep: all those before the first that isn't the target's own choice.
But what if tokens are drawn at random (lecture 09)? The text should have exactly the probabilities that the target
alone would give it, however bad the draft model is. Here's a rule that achieves this. Go through the guesses in order.
A token that had probability $q$ in the draft model and has probability $p$ in the target is kept with probability
$\min(1, p/q)$: always if the target finds it at least as likely as the draft does, and half of the time if the target
finds it half as likely. The first guess that isn't kept is replaced by another token. The guesses after it are dropped
unchecked, because they continue a text that no longer exists. The next round starts after the replacement.

From which probabilities should the replacement be drawn? Not from the target's own, as you'll see. Work it out:

### Exercise 13.6 · Keep a guess, or replace it (optional) &nbsp; ★★☆ &nbsp; 15 minutes

Write `verify(draft, target, tokens, uniforms)`, which decides what becomes of the $k \ge 1$ guesses in `tokens`. Guess
number $i$ (from 0) was drawn from the probabilities `draft[i]`, and `target[i]` holds the target's probabilities at the
same position. `target` has one more row, `target[k]`, for the token after all the guesses. Guess $i$ is kept if
`uniforms[i]` (one random number per guess) is less than $p/q$, with this token's $p$ and $q$ as above, and if all
guesses before it were kept. (These numbers are drawn uniformly, at least 0 and less than 1, so the first condition
holds with probability $\min(1, p/q)$.)

Return a pair: how many guesses are kept, and the probabilities, `[vocabulary]`, from which the next token has to be
drawn. If all $k$ are kept, these are the target's last row. Otherwise, the next token replaces the first guess that
isn't kept. Its probabilities have to be such that the token at this position, whether it's a guess that was kept or a
replacement, has exactly the target's probabilities. They mustn't depend on which token was guessed at this position;
then there's only one solution.

All rows contain probabilities that add up to 1, and they may contain zeros, but no guess had probability 0 in the draft
model. `draft` and `target` have the same floating-point dtype, and so do the probabilities that you return. `tokens` is
`int64`. None of the `uniforms` is so close to its $p/q$ that rounding would matter, and no two rows differ by so little
that subtracting them would lose most digits. Don't change the arguments.
"""


# %% nbgrader={"grade": false, "grade_id": "verify", "locked": false, "schema_version": 3, "solution": true, "task": false}
def verify(
    draft: Float[Tensor, "k vocabulary"],
    target: Float[Tensor, "k_plus_1 vocabulary"],
    tokens: Int[Tensor, "k"],
    uniforms: Float[Tensor, "k"],
) -> tuple[int, Float[Tensor, "vocabulary"]]:
    """How many of the draft's tokens are kept, and the probabilities of the token that follows them."""
    ### BEGIN SOLUTION
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target[i, token] / draft[i, token]:
            missing = (target[i] - draft[i]).clamp(min=0)
            return i, missing / missing.sum()
    return len(tokens), target[-1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_verify", "locked": true}
check("verify")

# %% [markdown]
r"""
<details><summary>Hint 1</summary>For one position and one token, what's the probability that the draft guesses this token <em>and</em> that the guess is kept? Consider two cases: p is at least q, or p is less than q.</details>
<details><summary>Hint 2</summary>Compare that with p. How much is missing, and for which tokens? The replacement has to add just this, and probabilities have to add up to 1.</details>

**Why it matters.** The draft model affects only how fast the text is generated, never the probabilities of its
tokens. So you can use any draft that you like, without testing the quality of the answers again.

Let's see whether the probabilities are right. For a vocabulary of eight tokens, the next cell makes 10,000 guesses,
calls your function on each, and counts the tokens that come out. Then it does the same with replacements drawn from the
target's own probabilities.
"""

# %%
p = torch.tensor([0.30, 0.25, 0.15, 0.10, 0.08, 0.06, 0.04, 0.02], dtype=torch.float64)
q = torch.tensor([0.05, 0.40, 0.05, 0.20, 0.10, 0.05, 0.05, 0.10], dtype=torch.float64)


def frequencies(from_target: bool, rounds: int = 10_000) -> Tensor:
    """How often each token comes out; `from_target`: replacements have the target's probabilities."""
    generator = torch.Generator().manual_seed(0)
    guesses = torch.multinomial(q, rounds, replacement=True, generator=generator)
    uniforms = torch.rand(rounds, generator=generator, dtype=torch.float64)
    counts = torch.zeros(8, dtype=torch.float64)
    for token, uniform in zip(guesses, uniforms, strict=True):
        kept, following = verify(q[None], torch.stack([p, p]), token[None], uniform[None])
        if kept == 0:
            following = p if from_target else following
            token = torch.multinomial(following, 1, generator=generator)[0]
        counts[token] += 1
    return counts / rounds


yours, naive = frequencies(from_target=False), frequencies(from_target=True)

# %%
finding = (
    "With your replacements, tokens have the target's probabilities,\n"
    "although the draft's are far off"
)
figure = Figure(figsize=(8.9, 4.2), layout="constrained")
axes = figure.add_subplot(xlabel="token", ylabel="probability, or frequency in 10,000 rounds")
axes.spines[["top", "right"]].set_visible(False)
axes.bar(range(8), p.tolist(), width=0.8, fill=False, edgecolor=plots.PREDICTED, label="target")
for offset, heights, marker, color, label in (
    (-0.2, q, "_", plots.PREDICTED, "draft"),
    (0.0, yours, "o", plots.MEASURED, "your replacements"),
    (0.2, naive, "^", plots.MEASURED, "replacements from the target"),
):
    places = [token + offset for token in range(8)]
    axes.plot(places, heights.tolist(), marker, color=color, ms=8, label=label)
axes.legend(frameon=False)
figure.suptitle(finding, x=0.01, ha="left", size=11, weight="bold")
plots.show(
    figure,
    alt=f"{finding}. A bar for each of eight tokens shows the target's probability. The frequencies with your "
    "replacements lie on the tops of the bars; those with replacements from the target are mostly between "
    "the bars and the draft's probabilities.",
)
for name, found in (("your replacements", yours), ("replacements from the target", naive)):
    print(f"{name}: off by up to {(found - p).abs().max():.3f}")
assert (yours - p).abs().max() < 0.02
assert (naive - p).abs().max() > 0.05

# %% [markdown]
r"""
The draft guesses token 1 too often and token 0 too rarely. Dropping guesses takes just enough from token 1, but adds
nothing to token 0; what token 0 lacks has to come from the replacements. If these have the target's own probabilities,
some of them are tokens that are already frequent enough.

How many tokens do you get from each pass of the target? At least one, because even if no guess is kept, there's a
replacement; and at most $k + 1$.

The **acceptance rate** $\alpha$ is the probability that a guess is kept, if those before it were. So the first two are
kept with probability $\alpha^2$, and so on. If $\alpha$ is the same everywhere, guess $i$ is kept with probability
$\alpha^i$, so on average it gives $\alpha^i$ tokens; and one more token always follows. In all, that's
$1 + \alpha + \alpha^2 + \dots + \alpha^k$. With $\alpha = 0.8$ and $k = 4$, that's 3.36.

Does that hold for models whose acceptance rate changes from token to token? Our target has 8 layers with random
weights, and we draw at a temperature of 0.2. As drafts, we take only its first 1, 3, 5 or 7 layers. (For simplicity,
nothing is cached here. With caches, both models would have to forget the tokens that were dropped: your `KVCache` needs
only a smaller `length` for that.)
"""


# %%
def next_probabilities(
    model: nn.Module, ids: Int[Tensor, "1 t"]
) -> Float[Tensor, "t vocabulary"]:
    """The probabilities of the token after each position, at a temperature of 0.2."""
    return (model(ids)[0] / 0.2).softmax(dim=-1)


@torch.no_grad()
def speculate(
    target: nn.Module,
    draft: nn.Module,
    ids: Tensor,
    count: int,
    k: int,
    generator: torch.Generator,
) -> tuple[Tensor, list[int]]:
    """ids, then at least `count` more; and how many guesses each pass of the target kept."""
    end, kept_by_pass = ids.shape[1] + count, []
    while ids.shape[1] < end:
        start, rows = ids.shape[1], []
        for _ in range(k):
            rows.append(next_probabilities(draft, ids)[-1])
            token = torch.multinomial(rows[-1], 1, generator=generator)
            ids = torch.cat([ids, token[None]], dim=1)
        checked = next_probabilities(target, ids)[start - 1 :]
        uniforms = torch.rand(k, generator=generator)
        kept, following = verify(torch.stack(rows), checked, ids[0, start:], uniforms)
        token = torch.multinomial(following, 1, generator=generator)
        ids = torch.cat([ids[:, : start + kept], token[None]], dim=1)
        kept_by_pass.append(kept)
    return ids, kept_by_pass


torch.manual_seed(0)
deep = Transformer(64, 128, 64, 8, 8, 2).eval()
print("layers of the draft  acceptance rate  tokens per pass: formula  measured")
for layers_left in (1, 3, 5, 7):
    shallow = copy.deepcopy(deep)
    shallow.blocks = deep.blocks[:layers_left]
    kept_by_pass = []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        kept_by_pass += speculate(deep, shallow, torch.tensor([[seed]]), 60, 4, generator)[1]
    checked = sum(min(kept + 1, 4) for kept in kept_by_pass)  # guesses that were checked
    rate = sum(kept_by_pass) / checked
    formula = sum(rate**i for i in range(4 + 1))
    found = 1 + sum(kept_by_pass) / len(kept_by_pass)
    print(f"{layers_left:19} {rate:16.2f} {formula:24.2f} {found:9.2f}")
    assert 1 < found <= 5 and abs(found / formula - 1) < 0.15
assert round(sum(0.8**i for i in range(4 + 1)), 2) == 3.36

# %% [markdown]
r"""
The more of the target's layers the draft has, the more of its guesses are kept, and the formula is close although it
assumes the same rate everywhere. But a draft with 7 of 8 layers saves hardly any time. It also matters how fast the
draft is.

Take Llama 3.1 70B on eight H100s, which share every pass evenly (we ignore the communication between them), with Llama
3.1 8B as its draft and 512 tokens of context. A round consists of $k$ steps of the draft, each of which takes 11% of
the time of a target step, and one pass of the target over $k + 1$ tokens.

**Predict.** With $k = 4$, an acceptance rate of 0.8 and one sequence, how many times as fast is speculative decoding as
plain decoding?
"""

# %%
guess = None  # times as fast


# %%
def llama_shape(name: str) -> dict[str, float]:
    """What forward_seconds needs to know about a Llama 3.1 model in bfloat16."""
    layers, width, heads, kv_heads, parameters = (
        int(FACTS[f"Llama 3.1 {name} {what}"].value)
        for what in ("layers", "width", "heads", "key and value heads", "parameters")
    )
    weights = parameters - vocabulary * width
    token_bytes = kv_cache_bytes(
        "grouped-query", layers, heads, width // heads, 1, 1, 2, kv_heads=kv_heads
    )
    return {
        "weights": weights,
        "weight_bytes": 2 * weights,
        "layers": layers,
        "width": width,
        "token_bytes": token_bytes,
    }


large_model, draft_model = llama_shape("70B"), llama_shape("8B")
eight_cards = (8 * card[0], 8 * card[1])
assert draft_model == llama


def times_as_fast(rate: float, k: int, batch: int) -> float:
    """Tokens per second with speculative decoding, relative to those without."""
    plain = forward_seconds(large_model, batch, 1, 512, *eight_cards)
    drafting = k * forward_seconds(draft_model, batch, 1, 512, *eight_cards)
    checking = forward_seconds(large_model, batch, k + 1, 512, *eight_cards)
    return sum(rate**i for i in range(k + 1)) * plain / (drafting + checking)


reconcile(
    "speculative decoding, one sequence", guess, times_as_fast(0.8, 4, 1), "times as fast"
)
steps = [forward_seconds(m, 1, 1, 512, *eight_cards) for m in (draft_model, large_model)]
assert round(steps[0] / steps[1], 2) == 0.11
assert round(times_as_fast(0.8, 4, 1), 2) == 2.35

# %%
batches = [2**i for i in range(10)]
finding = "Guessing pays off while the arithmetic units are idle, but slows down a large batch"
plots.show(
    plots.curves(
        batches,
        {},
        {
            f"acceptance rate {rate}": [times_as_fast(rate, 4, batch) for batch in batches]
            for rate in (0.9, 0.8, 0.6)
        },
        xlabel="sequences in the batch",
        ylabel="times as fast as without a draft",
        title=finding,
    ),
    alt=f"{finding}. Three curves, for acceptance rates of 0.9, 0.8 and 0.6, start at 2.9, 2.4 and 1.6 for one "
    "sequence, stay nearly level up to 64, and then fall to between 0.4 and 0.7 at 512.",
)
assert times_as_fast(0.8, 4, 64) > 2 and times_as_fast(0.8, 4, 256) < 1

# %% [markdown]
r"""
Up to 64 sequences, the four guesses per sequence cost the target hardly any time: with 64, its 320 tokens per pass just
reach the point where arithmetic takes as long as reading. With 256, it has to process 1,280 tokens per pass, so the
pass is compute-bound, and the arithmetic spent on dropped guesses is wasted. Batching and speculative decoding compete
for the same idle units.

*Try it yourself:* with an acceptance rate of 0.8 and one sequence, which $k$ is best? And with a rate of 0.6?

## 7 · Fewer bytes per weight (optional)

A memory-bound step gets faster if there are fewer bytes to read. During training, a model's weights have to be precise,
because the updates are small (lecture 10). Afterward, 8 bits may be enough, or even 4. That's quantization again, now
with integers: each weight becomes an integer *code*, and a group of codes shares a scale, so that
$w \approx \text{code} \cdot \text{scale}$. The matrix products still multiply 16-bit numbers: the kernel reads codes
and converts them on the fly.

The size of a group matters. A scale is determined by the largest weight of its group, so a single outlier makes the
steps between codes coarse for all the others. Small groups limit the damage, but each has a scale to store.

The next cell does exercise 10.6 with integers: two functions that quantize each row of a matrix in groups of `group`
neighbors, and convert the codes back. The largest code is $2^{\text{bits} - 1} - 1$, and the scale of a group turns its
largest magnitude into that code or its negative. (The code $-2^{\text{bits} - 1}$ isn't used.)
"""


# %%
def quantize(
    w: Float[Tensor, "rows columns"], bits: int, group: int
) -> tuple[Int8[Tensor, "rows columns"], Float[Tensor, "rows groups"]]:
    """Codes and scales, with w ≈ code · scale, where `group` neighbors in a row share a scale."""
    grouped = rearrange(w, "rows (groups n) -> rows groups n", n=group)
    scales = grouped.abs().amax(dim=-1) / (2 ** (bits - 1) - 1)
    scales = torch.where(scales > 0, scales, 1.0)  # a group of zeros
    codes = (grouped / scales[:, :, None]).round()
    return rearrange(codes, "rows groups n -> rows (groups n)").to(torch.int8), scales


def dequantize(
    codes: Int8[Tensor, "rows columns"], scales: Float[Tensor, "rows groups"]
) -> Float[Tensor, "rows columns"]:
    """The weights that codes and scales stand for."""
    return codes * scales.repeat_interleave(codes.shape[1] // scales.shape[1], dim=1)


codes, scales = quantize(torch.tensor([[0.3, -1.4, 0.0, 0.0], [2.1, 0.7, 7.0, -3.0]]), 4, 2)
print(codes.tolist(), [[round(s, 3) for s in row] for row in scales.tolist()])
assert codes.tolist() == [[2, -7, 0, 0], [7, 2, 7, -3]]

# %% [markdown]
r"""
A group with its own scale is the basic unit of many formats for quantized weights. torchao's 4-bit format, which you'll
meet below, has groups of 64.

How much larger is the error with large groups? Take a matrix of normally distributed weights in which one weight is an
outlier, 100 times as large as the standard deviation. We quantize it with one scale for everything, for each row of
1,024, and for each group of 32. The error is the root mean square of the differences between the dequantized and the
original weights, divided by the root mean square of the original weights; the bits per weight include the scales, in 16
bits.
"""

# %%
torch.manual_seed(0)
w = torch.randn(256, 1_024, dtype=torch.float64)
w[100, 500] = 100.0
errors: dict[tuple[int, str], float] = {}
for bits in (8, 4):
    for name, matrix, group in (
        ("one for all", w.view(1, -1), w.numel()),
        ("one per row", w, 1_024),
        ("one per 32", w, 32),
    ):
        found = dequantize(*quantize(matrix, bits, group)).view_as(w)
        error = ((found - w).square().mean() / w.square().mean()).sqrt().item()
        errors[bits, name] = error
        print(
            f"{bits} bits, scales: {name:>11}: {bits + 16 / group:5.2f} bits per weight, error {error:6.2%}"
        )

assert errors[8, "one for all"] > 10 * errors[8, "one per row"] > 20 * errors[8, "one per 32"]
assert errors[4, "one for all"] > 0.9  # nearly every weight has become 0
assert 0.08 < errors[4, "one per 32"] < 0.66 * errors[4, "one per row"] < 0.2

# %% [markdown]
r"""
In 8 bits, a scale for each row removes most of the damage, and costs next to nothing. In 4 bits, one scale for all
turns nearly every weight into 0. With so few bits, small groups help: 32 weights instead of a row of 1,024 reduce the
error by more than a third, for half a bit more per weight.

How much faster does decoding get? Suppose that the 4-bit weights of Llama 3.1 8B have a 16-bit scale for each group of
32. Then a weight takes 4.5 bits instead of 16, and a decode step for one sequence with little context could be 3.6
times as fast. The cache stays in bfloat16.

**Predict.** For 64 sequences with 2,048 tokens of context each, how many times as fast is a decode step as in bfloat16?
"""

# %%
guess = None  # times as fast

# %%
four_bits = llama | {"weight_bytes": read * (4 + 16 / 32) / 8}
assert round(llama["weight_bytes"] / four_bits["weight_bytes"], 1) == 3.6
faster = {
    "decode, 1 sequence": (1, 1),
    "decode, 64 sequences": (64, 1),
    "prefill, 1 sequence": (1, 2_048),
}
gains = {
    what: forward_seconds(llama, batch, new, 2_048, *card)
    / forward_seconds(four_bits, batch, new, 2_048, *card)
    for what, (batch, new) in faster.items()
}
reconcile(
    "64 sequences with 4-bit weights", guess, gains["decode, 64 sequences"], "times as fast"
)
for what, times in gains.items():
    print(f"{what}: {times:.2f} times as fast")
assert round(gains["decode, 64 sequences"], 2) == 1.50
assert math.isclose(gains["prefill, 1 sequence"], 1)

# %% [markdown]
r"""
With 64 sequences, many of the bytes are cache, and these haven't shrunk. Prefill doesn't gain anything: it's waiting
for arithmetic, and the products are the same as before. (A card that multiplies 8-bit numbers faster can speed up
prefill too, but then the activations have to be in 8 bits as well.)

What do published measurements show? For Llama 3 8B on an A100, with a single sequence, the documentation of
[torchao](https://github.com/pytorch/ao/blob/v0.13.0/torchao/quantization/README.md) compares three formats:
"""

# %%
differences = {}
print("weights      size   at least  published  difference  perplexity")
for name in ("bfloat16", "int8", "int4"):
    weight_bytes, rate, perplexity = (
        FACTS[f"Llama 3 8B {what}{name}"].value
        for what in ("size, ", "decode, A100, ", "perplexity, ")
    )
    least, took = weight_bytes / a100.bandwidth, 1 / rate
    differences[name] = took - least
    print(
        f"{name:>8} {readable(weight_bytes, 'B'):>8} {1e3 * least:7.2f} ms {1e3 * took:7.2f} ms "
        f"{1e3 * differences[name]:8.1f} ms {perplexity:11.2f}"
    )


def relative(what: str) -> float:
    """The number for bfloat16 divided by that for int4."""
    return FACTS[f"Llama 3 8B {what}, bfloat16"].value / FACTS[f"Llama 3 8B {what}, int4"].value


print(
    f"int4: {relative('size'):.1f} times fewer bytes, {1 / relative('decode, A100'):.1f} times as fast"
)
assert all(2.8e-3 < difference < 3.5e-3 for difference in differences.values())
assert round(relative("size"), 1) == 3.6 and round(1 / relative("decode, A100"), 1) == 1.9
assert round(1 / relative("perplexity"), 2) == 1.12

# %% [markdown]
r"""
In 8 bits, the perplexity (lecture 09) hardly changes. In 4 bits, it rises by 12%, which is why people look for cleverer
ways of choosing the codes.

Now look at the differences between the bound and the published time. They're all about 3 ms, although the bytes differ
by a factor of 3.6. It seems that part of a step doesn't depend on the bytes at all: that's the *overhead*, which you'll
measure in the next section. The fewer bytes you read, the more it matters.

*Try it yourself:* how large is the error with 3 or 2 bits, in groups of 32?

## 8 · The result: your machine

To predict how many tokens per second a model generates on your machine, we need four numbers, and we can get all of
them without letting the model generate a single token:

- the *bytes* of the model, from its shape and your `kv_cache_bytes`;
- your machine's *bandwidth* for reading weights, from the time that it takes to multiply each of the model's matrices
  by one vector;
- its *peak*: the measured ceiling (lecture 05);
- the *overhead* of a step. A step consists of many small operations, one after another, and each of them takes a little
  time to start and to finish, whatever the size of the model. To measure it, we time a model that has just as many
  layers, but is so narrow that reading its weights takes almost no time.
"""

# %% tags=["timed"]
if devices.on_gpu(device):
    large = (devices.total_memory(device) or 0) >= 24e9
    LAYERS, WIDTH, HEADS, KV_HEADS = (16, 4_096, 32, 8) if large else (12, 1_024, 16, 4)
    dtype = torch.bfloat16
else:
    small = os.environ.get("COURSE_PRESET") == "small"  # set by the course's tests
    if small:
        torch.set_num_threads(1)  # beside other tests, a second one would mostly wait
    LAYERS, WIDTH, HEADS, KV_HEADS = 4 if small else 8, 768, 12, 4
    dtype = torch.float32
PROMPT, COUNT = 128, 48  # tokens


def build(width: int) -> Transformer:
    """A model of LAYERS layers, with random weights."""
    torch.manual_seed(0)
    with torch.device(device):
        made = Transformer(256, 1_024, width, LAYERS, HEADS, KV_HEADS)
    return made.to(dtype).eval()


writer = build(WIDTH)
multiplying = sum(
    p.numel()
    for name, p in writer.named_parameters()
    if not name.startswith(("tokens", "places"))
)
here: dict[str, float] = {
    "weights": multiplying,
    "weight_bytes": multiplying * dtype.itemsize,
    "layers": LAYERS,
    "width": WIDTH,
    "token_bytes": kv_cache_bytes(
        "grouped-query", LAYERS, HEADS, WIDTH // HEADS, 1, 1, dtype.itemsize, kv_heads=KV_HEADS
    ),
}
print(f"{multiplying / 1e6:.0f} million weights, {readable(here['weight_bytes'], 'B')}")

# %% tags=["timed"]
matrices = [
    p
    for name, p in writer.named_parameters()
    if p.dim() == 2 and not name.startswith(("tokens", "places"))
]
matrix_bytes = sum(w.nbytes for w in matrices)


def product_seconds(batch: int, norms: bool = True) -> float:
    """Every matrix of the model times `batch` vectors, with or without a norm after each product."""
    inputs = {
        n: torch.randn(batch, n, device=device, dtype=dtype)
        for n in {w.shape[1] for w in matrices}
    }

    @torch.no_grad()
    def multiply() -> None:
        for w in matrices:
            y = F.linear(inputs[w.shape[1]], w)
            if norms:
                F.layer_norm(y, y.shape[1:])

    return timing.benchmark(multiply, device=device, min_seconds=0.2).minimum


for norms in (False, True):
    read_bandwidth = matrix_bytes / product_seconds(1, norms)
    how = "with a norm after each product" if norms else "one product after the other"
    print(f"weights are read at {readable(read_bandwidth, 'B/s')}, {how}")
peak_here = hardware.measured_ceiling(device, dtype, max_seconds=1).flops_per_second


@torch.no_grad()
def step_seconds(model: Transformer, batch: int, steps: int = 12) -> float:
    """The time of the fastest of `steps` decode steps, after a prompt of PROMPT tokens."""
    caches = model.new_caches(batch, PROMPT + steps)
    new = torch.zeros(batch, PROMPT, dtype=torch.int64, device=device)
    taken = []
    for _ in range(steps + 1):
        devices.synchronize(device)
        start = time.perf_counter()
        new = model(new, caches)[:, -1].argmax(dim=-1, keepdim=True)
        devices.synchronize(device)
        taken.append(time.perf_counter() - start)
    return min(taken[1:])  # without the prefill


narrow = build(4 * HEADS)
step_seconds(narrow, 1)  # warm up
overhead = step_seconds(narrow, 1)
reading = here["weight_bytes"] / read_bandwidth
print(f"peak {readable(peak_here, 'FLOP/s')}")
print(
    f"in a step: {readable(reading, 's')} for the weights, overhead {readable(overhead, 's')}"
)

# %% [markdown]
r"""
The bandwidth was measured twice, without and with a norm after each product. We use the second, because the model
alternates between products and small operations, too. On a CPU, a norm often runs on a single thread, and the others
have to be woken up for the next product. (So a little of the overhead is counted twice. If the second came out faster,
another program was running during the first: run the cell again.)

On a CPU, the overhead and the time for reading add up, because each operation starts only when the one before it is
done. On a CUDA GPU, the next operations are queued while it's still busy (lecture 05), so we take the slower of the
two. (That's optimistic: the A100's overhead in section 7 came on top.)

Now it's your turn. Your machine's numbers are above.

**Predict.** The model generates 48 tokens after a prompt of 128, for one sequence. How many tokens per second is that?
(The time includes the prefill.)
"""

# %%
guess_of_rate = None  # tokens per second


# %% tags=["open"]
def planned_seconds(batch: int, new: int, context: int) -> float:
    """Seconds of a pass on this machine: bytes or FLOPs, and the overhead."""
    least = forward_seconds(here, batch, new, context, peak_here, read_bandwidth)
    return max(least, overhead) if device.type == "cuda" else least + overhead


# %% tags=["timed"]
plan = planned_seconds(1, PROMPT, PROMPT) + sum(
    planned_seconds(1, 1, PROMPT + i) for i in range(1, COUNT)
)
start_ids = torch.arange(PROMPT, device=device)[None]
attempts = []
for _ in range(3):  # the first also warms up
    devices.synchronize(device)
    begin = time.perf_counter()
    written = generate_cached(writer, start_ids, COUNT)
    devices.synchronize(device)
    attempts.append(time.perf_counter() - begin)
took = min(attempts)

reconcile("your machine writes", guess_of_rate, COUNT / took, "tokens/s")
print(
    f"predicted {COUNT / plan:.3g} tokens/s; measured {COUNT / took:.3g}, {plan / took - 1:+.0%}"
)
assert written.shape == (1, PROMPT + COUNT)
assert 1 / 50 < took / plan < 50  # a machine may be busy; a wrong unit is a factor of 1,000

# %% [markdown]
r"""
On an idle machine, the prediction should be off by no more than a third.

Finally, let's try batching: the same step serves 1, 2, 4, 8 or 16 sequences, and each of them gets a token. We compare
the measured rate with two predictions. One is your formula with the overhead, as before. For the other, the products
are measured with as many vectors as there are sequences, and combined with the overhead in the same way.
"""

# %% tags=["timed"]
batches = [1, 2, 4, 8, 16]
planned = [batch / planned_seconds(batch, 1, PROMPT + 6) for batch in batches]
by_products = []
for batch in batches:
    products = product_seconds(batch)
    both = max(products, overhead) if device.type == "cuda" else products + overhead
    by_products.append(batch / both)
measured = [batch / step_seconds(writer, batch) for batch in batches]
print("sequences  formula  products  measured   (tokens per second)")
for row in zip(batches, planned, by_products, measured, strict=True):
    print("{:9} {:8,.0f} {:9,.0f} {:9,.0f}".format(*row))
gains = [rates[-1] / rates[0] for rates in (measured, planned, by_products)]
finding = timing.conclusion(
    "16 sequences at once get {:.1f} times the tokens per second of one; "
    "the formula says {:.1f}, the products {:.1f}".format(*gains),
    {
        "16 sequences get more tokens per second than one": min(gains) > 1,
        "the formula promises at least as much as you measure": gains[0] <= 1.5 * gains[1],
        "the products promise about as much": 1 / 2 < gains[0] / gains[2] < 2,
    },
)
plots.show(
    plots.curves(
        batches,
        {"measured": measured},
        {"your formula": planned, "the products": by_products},
        xlabel="sequences in the batch",
        ylabel="tokens per second, all together",
        title=finding,
    ),
    alt=f"{finding}. Tokens per second against the number of sequences: measured, and two predictions.",
)
ratios = [max(p / m, m / p) for p, m in zip(planned, measured, strict=True)]
assert max(ratios) < 50  # a machine may be busy

# %% [markdown]
r"""
With many sequences the formula may promise more than you measured, and the products show why: on a CPU, multiplying a
`float32` matrix by a few vectors may reach neither the bandwidth nor the peak. (If it promises less, another program
was probably running while the bandwidth was measured.)

So what is the model waiting for? Compare the two printed times, of reading the weights and of the overhead; in a large
model it's the weights. A batch shares that wait, until the caches, the arithmetic or the overhead take over.

*Try it yourself:* build the model with as many key-value heads as query heads. Does a step with a batch of 16 take
longer, and how much longer should it take?

## Takeaways

**Mechanics.** A token adds $2 \cdot h_{kv} \cdot e$ numbers per layer to the cache, or $c + r$ with latent attention. A
pass takes at least the larger of two times: FLOPs over peak, with $2N + 4 L d \cdot \text{context}$ FLOPs per new token
for $N$ weights that multiply something; and bytes over bandwidth, with all weights and all caches read once. Prefill is
compute-bound unless the prompt is short; decode is memory-bound unless the batch is large and the contexts are short.

**Mindset.** Test a cache by comparing its logits with those of the same model without a cache, in float64. Ask of each
speedup which bytes or FLOPs it removes, and in which phase. Then you'll know where it can't help.

**Intuitions.** The sequences of a batch share the weights, but each has a cache of its own. Long contexts limit how
many users a card can serve. Quantized weights make decoding faster, but not prefill. And the faster a step gets, the
more its overhead counts. Speculative decoding and batching both use the arithmetic that a single sequence leaves idle.

Next: [14 · Capstone: train a small Transformer](../14_capstone/14_capstone.ipynb). You'll plan a whole Transformer,
then build it, train it, compare it with the plan, and let it generate text with your cache.
"""
