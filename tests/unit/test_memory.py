"""course_utils.memory: bytes against formulas and against the allocator's own record, to the byte."""

import json
import linecache
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from course_utils.memory import Block, blocks, held_at_peak, same_storage, saved_bytes, storage_bytes, track

B, D, H, C = 32, 64, 256, 10  # batch, input, hidden, classes
N = D * H + H + H * H + H + H * C + C  # parameters of the MLP


def mlp(activation: type[torch.nn.Module] = torch.nn.ReLU) -> torch.nn.Sequential:
    torch.manual_seed(0)
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(D, H), activation(), linear(H, H), activation(), linear(H, C))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(B, D), torch.randint(C, (B,))


def test_storage_bytes_is_the_whole_storage():
    x = torch.zeros(100, 100)
    assert storage_bytes(x) == storage_bytes(x[3, :2]) == storage_bytes(x.t()) == 40_000
    assert storage_bytes(torch.zeros(1).expand(1000)) == 4
    assert storage_bytes(torch.empty(0)) == 0
    assert storage_bytes(torch.empty(5, dtype=torch.bfloat16, device="meta")) == 10


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_same_storage_is_true_for_views_and_false_for_copies(device):
    x = torch.empty(4, 4, device=device)
    for view in (x, x[1:], x.t(), x.view(16), x.detach(), x[:0], x.expand(2, 4, 4)):
        assert same_storage(x, view) and same_storage(view, x)
    for other in (torch.empty(4, 4, device=device), x.clone(), x.t().contiguous(), x + 1):
        assert not same_storage(x, other)


def test_same_storage_of_empty_and_of_foreign_memory():
    empty = torch.empty(0)
    assert same_storage(empty, empty.view(0, 3)) and not same_storage(empty, torch.empty(0))
    assert not same_storage(torch.empty(4), torch.empty(4, device="meta"))
    array = np.zeros(4, dtype=np.float32)
    assert same_storage(torch.from_numpy(array), torch.from_numpy(array))
    assert not same_storage(torch.from_numpy(array), torch.from_numpy(array.copy()))
    assert not same_storage(torch.tensor(array), torch.from_numpy(array))


@pytest.mark.parametrize("function", [storage_bytes, lambda x: same_storage(torch.zeros(1), x)])
def test_a_list_and_a_sparse_tensor_have_no_storage_and_are_clear_errors(function):
    with pytest.raises(TypeError, match="given a list; expected a tensor"):
        function([1.0])
    with pytest.raises(TypeError, match="sparse_coo, which has no single storage"):
        function(torch.eye(3).to_sparse())


# cross_entropy saves its log-softmax [B, C] and one number; a linear its input, shared with whoever saved it as output.
@pytest.mark.parametrize(
    ("activation", "elements"),
    [
        (torch.nn.ReLU, 2 * B * H + B * C + 1),  # saves its output, which is the next linear's input
        (torch.nn.Tanh, 2 * B * H + B * C + 1),
        (torch.nn.GELU, 4 * B * H + B * C + 1),  # saves its input as well
    ],
)
def test_saved_bytes_of_an_mlp_match_the_formula(activation, elements):
    model, (x, y) = mlp(activation), batch()
    loss = lambda x, y: F.cross_entropy(model(x), y)  # noqa: E731
    assert saved_bytes(loss, x, y, exclude=model.parameters()) == 4 * elements
    assert saved_bytes(loss, x, y, exclude=model) == 4 * elements
    assert saved_bytes(model, x) == 4 * (elements - B * C - 1)  # a module's own parameters are left out
    assert saved_bytes(loss, x, y) > 4 * elements
    with torch.no_grad():
        assert saved_bytes(model, x) == 0


def test_saved_bytes_counts_a_storage_once_and_whole():
    w = torch.ones(10, requires_grad=True)
    big = torch.ones(1000, 10)
    assert saved_bytes(lambda: w * big[0] + w * big[1], exclude=w) == 40_000
    assert saved_bytes(lambda b: w * b[0], big, exclude=[w]) == 0
    assert saved_bytes(lambda b: w * b["x"][0], {"x": big}, exclude=[[w]]) == 0


def test_saved_bytes_counts_what_is_kept_and_not_what_was_let_go():
    w = torch.ones(10, requires_grad=True)

    def forward_twice() -> torch.Tensor:
        (w * torch.ones(1000, 10)).exp()  # this graph is dropped
        return w * torch.ones(10)

    assert saved_bytes(forward_twice, exclude=w) == 40
    assert saved_bytes(lambda: (w * torch.ones(10)).sum().backward(), exclude=w) == 0


def test_checkpointing_saves_less():
    blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(D, D), torch.nn.GELU()) for _ in range(4))
    x = torch.randn(B, D)

    def run(with_checkpoint: bool) -> torch.Tensor:
        h = x
        for block in blocks:
            h = checkpoint(block, h, use_reentrant=False) if with_checkpoint else block(h)
        return h

    known = [blocks, x]
    # Each block: its linear's input (the first is x) and GELU's input; a checkpoint keeps the block's input only.
    assert saved_bytes(run, False, exclude=known) == 4 * (3 + 4) * B * D
    assert saved_bytes(run, True, exclude=known) == 4 * 3 * B * D


def test_gradients_are_right_inside_saved_bytes():
    w = torch.full((3,), 2.0, requires_grad=True)
    found = []

    def step() -> torch.Tensor:
        (first,) = torch.autograd.grad((w.exp() * w).sum(), w, create_graph=True)
        found.extend([first, *torch.autograd.grad(first.sum(), w)])
        return first

    saved_bytes(step)
    e2 = torch.full((3,), 2.0).exp()
    torch.testing.assert_close(found, [3 * e2, 4 * e2])  # (x + 1)·eˣ and (x + 2)·eˣ


def test_saved_bytes_passes_errors_on():
    with pytest.raises(TypeError, match="was given a Tensor; expected a function or a module"):
        saved_bytes(torch.ones(1))
    with pytest.raises(ZeroDivisionError):
        saved_bytes(lambda: 1 / 0)


def test_track_counts_tensors_as_they_come_and_go():
    with track("cpu") as memory:
        assert memory.live == memory.peak == 0
        x = torch.zeros(32, 32)
        assert memory.live == 4096
        y = x.double()
        assert memory.live == 4096 + 8192
        del y
        assert memory.live == 4096
    assert (memory.live, memory.peak) == (4096, 4096 + 8192)
    assert (memory.allocated_live, memory.allocated_peak) == (memory.live, memory.peak)
    del x
    assert memory.live == 4096  # as it was when the block ended


def test_track_ignores_views_and_what_was_there_before():
    old = torch.zeros(100)
    array = np.zeros(1000)
    with track("cpu") as memory:
        views = old[:10], old.view(10, 10), old.add_(1), old.detach()
        numpys = torch.from_numpy(array)
        torch.add(old, 1, out=old)
        assert memory.live == memory.peak == 0
        del old, views, numpys
        assert memory.live == 0
        x = torch.zeros(10)
        more = [x[i] for i in range(10)]
        assert memory.live == 40
        del x
        assert memory.live == 40  # its views keep the storage
        del more
        assert memory.live == 0


def test_track_follows_a_storage_that_is_resized():
    old = torch.empty(0)
    with track("cpu") as memory:
        torch.add(torch.ones(5), 1, out=old)
        assert memory.live == 20
        new = torch.zeros(2)
        assert memory.live == 28
        new.resize_(100)
        assert memory.live == 420
        new.untyped_storage().resize_(0)  # below PyTorch's operations: seen with the next one
        new.resize_(1)
        assert memory.live == 24
    assert memory.peak == 420


def test_track_sees_every_usual_way_to_make_a_tensor():
    with track("cpu") as memory:
        made = [
            torch.tensor([1.0, 2.0]),
            torch.arange(3),
            torch.nn.Parameter(torch.empty(5)),
            torch.nn.Linear(3, 2),
            torch.randn(2, 2).to(torch.float64),
            torch.as_tensor(np.zeros(7)),  # numpy's memory, not PyTorch's
            *torch.ones(6).split(2),
        ]
        assert memory.live == 8 + 24 + 20 + 4 * (6 + 2) + 32 + 24
    del made


def test_track_counts_only_the_device_that_it_was_given():
    with track("meta") as memory:
        weight = torch.empty(49_152, 12_288, device="meta")
        torch.zeros(10)
        assert memory.live == storage_bytes(weight) == 2_415_919_104
    with track("cpu") as memory:
        torch.empty(10, device="meta")
    assert memory.peak == 0


def test_track_stops_counting_after_an_error_inside():
    with pytest.raises(KeyError), track("cpu") as memory:
        x = torch.zeros(10)
        raise KeyError
    y = x + 1
    assert memory.live == memory.peak == 40 and y.numel() == 10


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_tracking_an_absent_device_is_a_clear_error():
    with pytest.raises(RuntimeError, match="was given 'cuda'"), track("cuda"):
        pass


def test_track_accounts_for_a_training_step_to_the_byte():
    """Parameters, gradients, AdamW's state and saved activations of the MLP: each appears when it should."""
    with track("cpu") as memory:
        model = mlp()
        assert memory.live == 4 * N == 340_008
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        x, y = batch()
        base = memory.live
        assert base == 4 * N + 4 * B * D + 8 * B
        loss = F.cross_entropy(model(x), y)
        assert memory.live == base + 4 * (2 * B * H + B * C + 1) + 4  # saved for the backward, and the loss
        loss.backward()
        del loss
        assert memory.live == base + 4 * N  # gradients
        optimizer.step()
        state = 8 * N + 4 * 6  # two moments, and one number `step` for each of the 6 tensors
        assert memory.live == base + 4 * N + state
        optimizer.zero_grad(set_to_none=True)
        assert memory.live == base + state == 1_028_496
    assert memory.peak == 1_893_816  # in optimizer.step: temporaries of the largest tensor


def allocator_peak_and_net(step, tmp_path) -> tuple[int, int]:
    """What the CPU allocator itself recorded: every allocation (+) and release (−) in order."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        kept = step()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    del kept
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    moves = sorted((e["ts"], i, e["args"]["Bytes"]) for i, e in enumerate(events) if e["name"] == "[memory]")
    assert moves, "the profiler recorded no allocation"
    live = np.cumsum([size for _, _, size in moves])
    return int(max(live.max(), 0)), int(live[-1])


@pytest.mark.parametrize("which", ["mlp", "transformer"])
def test_track_agrees_with_the_allocators_own_record(which, tmp_path):
    if which == "mlp":
        model, (x, y) = mlp(), batch()

        def step():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss
    else:
        model = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        x = torch.randn(4, 16, 32)

        def step():
            loss = model(x).square().mean()
            loss.backward()
            return loss

    step()
    model.zero_grad(set_to_none=True)
    with track("cpu") as memory:
        kept = step()
    model.zero_grad(set_to_none=True)
    del kept
    assert (memory.peak, memory.live) == allocator_peak_and_net(step, tmp_path)


class TestOnPretendCuda:
    """The allocator's statistics, without a GPU: `track` must take differences, and tell requested from rounded."""

    @pytest.fixture
    def statistics(self, monkeypatch):
        values: dict[str, int] = {}
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        initialized = []
        monkeypatch.setattr(torch.cuda, "init", lambda: initialized.append(True))
        monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: values)

        def reset(device):
            assert initialized, "did you call init?"
            for kind in ("requested", "allocated"):
                values[f"{kind}_bytes.all.peak"] = values.get(f"{kind}_bytes.all.current", 0)

        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset)
        return values

    def allocate(self, values, requested):
        rounded = -(-abs(requested) // 512) * 512 * (1 if requested > 0 else -1)
        for kind, size in (("requested", requested), ("allocated", rounded)):
            key = f"{kind}_bytes.all.current"
            values[key] = values.get(key, 0) + size
            values[f"{kind}_bytes.all.peak"] = max(values.get(f"{kind}_bytes.all.peak", 0), values[key])

    def test_track_reports_differences_to_the_start(self, statistics):
        self.allocate(statistics, 90_000)
        self.allocate(statistics, -80_000)  # an earlier peak is not ours
        with track("cuda:0") as memory:
            self.allocate(statistics, 100)
            self.allocate(statistics, 1000)
            self.allocate(statistics, -1000)
            assert (memory.live, memory.allocated_live) == (100, 512)
        self.allocate(statistics, 10**6)
        assert (memory.live, memory.peak) == (100, 1100)
        assert (memory.allocated_live, memory.allocated_peak) == (512, 512 + 1024)

    def test_track_starts_at_zero_where_nothing_has_been_allocated_yet(self, statistics):
        statistics.clear()
        with track("cuda:0") as memory:
            assert memory.live == 0
            self.allocate(statistics, 100)
        assert (memory.live, memory.peak, memory.allocated_peak) == (100, 100, 512)


class TestBlocksOfASnapshot:
    """Events as `torch.cuda.memory._snapshot` lists them, without a GPU."""

    def event(self, action, addr, size=0, *frames):
        return {"action": action, "addr": addr, "size": size, "frames": frames}

    def frame(self, filename, line=1):
        return {"filename": str(filename), "line": line, "name": "f"}

    def test_a_block_lasts_from_its_allocation_to_the_request_to_free_it(self):
        events = [
            self.event("segment_alloc", 0, 2**21),
            self.event("alloc", 512, 100),
            self.event("free_requested", 64),  # a block from before the recording
            self.event("alloc", 1024, 300),
            self.event("free_requested", 512),
            self.event("free_completed", 512),
            self.event("alloc", 512, 200),  # the same address again
            self.event("snapshot", 0),
        ]
        assert blocks(events) == [Block(100, "", 0, 3), Block(300, "", 2, None), Block(200, "", 4, None)]
        assert [block.nbytes for block in held_at_peak(blocks(events))] == [300, 200]

    def test_at_the_peak_freed_blocks_do_not_count(self):
        found = [Block(5, "", 0, 1), Block(4, "", 2, 5), Block(3, "", 3, 4), Block(6, "", 6, None)]
        assert [block.nbytes for block in held_at_peak(found)] == [4, 3]
        assert held_at_peak([]) == []

    def test_a_block_names_the_innermost_line_outside_of_pytorch(self, tmp_path):
        own = tmp_path / "model.py"
        own.write_text("def forward(x):\n    return x @ x\n")
        inside = Path(torch.__file__).parent / "nn" / "functional.py"
        frames = [
            self.frame("??", 0),
            self.frame("<frozen x>"),
            self.frame("at.cpp"),
            self.frame(inside, 9),
            self.frame(own, 2),
            self.frame(tmp_path / "loop.py", 7),
        ]
        gone = self.frame(tmp_path / "gone.py", 7)
        linecache.clearcache()
        events = [self.event("alloc", 1, 4, *frames), self.event("alloc", 2, 4, gone), self.event("alloc", 3, 4)]
        assert [block.where for block in blocks(events)] == ["return x @ x", "gone.py, line 7", ""]
