"""course_utils.flops: counts against formulas, and MFU, intensity and roofline against published numbers."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils.flops import (
    arithmetic_intensity,
    attainable_flops,
    count_flops,
    mfu,
)

B, D, K = 8, 32, 16


@pytest.mark.parametrize(
    ("fn", "shapes", "expected"),
    [
        (torch.matmul, [(B, D), (D, K)], 2 * B * D * K),
        (torch.matmul, [(3, 5, B, D), (D, K)], 2 * 15 * B * D * K),
        (torch.matmul, [(B, D), (D,)], 2 * B * D),  # mv
        (torch.matmul, [(D,), (D,)], 2 * D),  # dot
        (torch.vdot, [(D,), (D,)], 2 * D),
        (torch.addmv, [(B,), (B, D), (D,)], 2 * B * D),
        (torch.addmm, [(B, K), (B, D), (D, K)], 2 * B * D * K),
        (torch.bmm, [(3, B, D), (3, D, K)], 2 * 3 * B * D * K),
        (torch.baddbmm, [(3, B, K), (3, B, D), (3, D, K)], 2 * 3 * B * D * K),
        (torch.addbmm, [(B, K), (3, B, D), (3, D, K)], 2 * 3 * B * D * K),
        (F.linear, [(B, D), (K, D), (K,)], 2 * B * D * K),
        (F.conv2d, [(2, 3, 8, 8), (4, 3, 3, 3)], 2 * 2 * 4 * 6 * 6 * 3 * 9),
        (torch.add, [(B, D), (B, D)], 0),
        (torch.softmax, [(B, D), -1], 0),
        (torch.outer, [(B,), (D,)], 0),
    ],
)
def test_single_operations_count_as_their_formulas_say(fn, shapes, expected):
    for device in ("cpu", "meta"):
        args = [torch.ones(s, device=device) if isinstance(s, tuple) else s for s in shapes]
        assert count_flops(fn, *args) == expected


def test_an_einsum_counts_as_the_matmul_that_it_is():
    x, w = torch.ones(B, 3, D), torch.ones(D, K)
    assert count_flops(torch.einsum, "b t d, d k -> b t k", x, w) == 2 * B * 3 * D * K


@pytest.mark.parametrize(("input_needs_grad", "factor"), [(True, 6), (False, 4)])
def test_forward_and_backward_of_a_linear_layer_are_counted(input_needs_grad, factor):
    layer = torch.nn.Linear(D, K)
    x = torch.ones(B, D, requires_grad=input_needs_grad)
    assert count_flops(lambda: layer(x).sum().backward()) == factor * B * D * K


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("device", "backend", "backward"),
    [
        ("cpu", SDPBackend.FLASH_ATTENTION, 2.5),  # recomputes its scores
        ("cpu", SDPBackend.MATH, 2),
        ("meta", SDPBackend.MATH, 2),
    ],
)
def test_forward_and_backward_of_attention_are_counted(device, backend, backward, causal):
    heads, length, size = 4, 64, 16
    forward = 4 * B * heads * length**2 * size
    q, k, v = (torch.randn(B, heads, length, size, device=device, requires_grad=True) for _ in range(3))
    with sdpa_kernel(backend):
        attend = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)  # noqa: E731
        assert count_flops(attend) == forward
        assert count_flops(lambda: attend().sum().backward()) == forward + backward * forward


def test_a_large_model_is_counted_without_memory():
    with torch.device("meta"):
        model = torch.nn.Sequential(*(torch.nn.Linear(16_384, 16_384, bias=False) for _ in range(100)))
        x = torch.empty(4096, 16_384)
    parameters = sum(p.numel() for p in model.parameters())
    assert count_flops(model, x) == 2 * 4096 * parameters


def test_keyword_arguments_and_errors_reach_the_function():
    assert count_flops(torch.mm, torch.ones(2, 3), mat2=torch.ones(3, 5)) == 60
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        count_flops(torch.mm, torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(TypeError, match=r"was given a Tensor; expected a function: count_flops\(lambda: x @ w\)"):
        count_flops(torch.ones(2, 2))


def test_a_backward_pass_may_ask_for_gradients_of_a_modules_parameters():
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, block, x):
            ctx.block = block
            ctx.save_for_backward(x)
            return block(x)

        @staticmethod
        def backward(ctx, gradient):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.block(x)
            found, *of_parameters = torch.autograd.grad(y, [x, *ctx.block.parameters()], gradient)
            for p, each in zip(ctx.block.parameters(), of_parameters, strict=True):
                p.grad = each
            return None, found

    block = torch.nn.Sequential(torch.nn.Linear(D, K), torch.nn.Tanh())
    x = torch.ones(B, D, requires_grad=True)
    assert count_flops(lambda: Again.apply(block, x).sum().backward()) == 4 * 2 * B * D * K


def test_a_compiled_function_is_counted_as_the_plain_one_and_stays_compiled():
    ran = []

    def backend(graph, inputs):
        def run(*args):
            ran.append("compiled")
            return graph.forward(*args)

        return run

    x, w = torch.ones(B, D), torch.ones(D, K)
    for compiled in (
        torch.compile(lambda x: x @ w, backend=backend),
        torch.compile(torch.nn.Linear(D, K), backend=backend),
    ):
        compiled(x)
        assert ran == ["compiled"]
        assert count_flops(compiled, x) == 2 * B * D * K
        compiled(x)  # run under the counter itself, it would be eager from then on
        assert ran == ["compiled"] * 2
        ran.clear()


def test_mfu_agrees_with_published_runs():
    # MosaicML llm-foundry, MPT-7B on 8 H100 with 2048 tokens: 46.44 %. 6N per token and 12·L·d·T for attention.
    per_token = 6 * 6_658_859_008 + 12 * 32 * 4096 * 2048
    assert mfu(85_144 * per_token, 1.0, 8 * 989.4e12) == pytest.approx(0.4644, abs=2e-4)
    # PaLM 540B: 238.3 K tokens/s on 6144 TPU v4, 45.7 % without attention.
    assert mfu(6 * 540.35e9 * 238.3e3, 1.0, 6144 * 275e12) == pytest.approx(0.457, abs=1e-3)


def test_mfu_without_a_known_peak_is_unknown():
    assert mfu(1e12, 1.0, None) is None


def test_mfu_above_one_warns():
    with pytest.warns(RuntimeWarning, match="an MFU of 2 is more than the hardware can do"):
        assert mfu(2e12, 1.0, 1e12) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mfu(1.04e12, 1.0, 1e12) == pytest.approx(1.04)
        assert mfu(0, 1.0, 1e12) == 0


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((-1, 1, 1), "flops=-1"),
        ((float("nan"), 1, 1), "flops=nan"),
        ((1, 0, 1), "seconds=0"),
        ((1, -1, None), "seconds=-1"),
        ((1, 1, 0), "peak=0"),
        ((1, 1, float("inf")), "peak=inf"),
    ],
)
def test_mfu_refuses_what_it_cannot_divide(args, says):
    with pytest.raises(ValueError, match=f"mfu was given {says}"):
        mfu(*args)


def test_arithmetic_intensity_of_a_matmul_and_of_bad_numbers():
    n = 1024
    assert arithmetic_intensity(2 * n**3, 3 * n**2 * 2) == pytest.approx(n / 3)
    with pytest.raises(ValueError, match="bytes_moved=0"):
        arithmetic_intensity(1, 0)
    with pytest.raises(ValueError, match="flops=-1"):
        arithmetic_intensity(-1, 1)


def test_the_roofline_bends_at_the_ridge():
    peak, bandwidth = 989.4e12, 3.35e12  # H100 SXM, bf16
    ridge = peak / bandwidth
    assert ridge == pytest.approx(295, abs=0.5)
    assert attainable_flops(ridge / 2, peak, bandwidth) == pytest.approx(peak / 2)
    assert attainable_flops(2 * ridge, peak, bandwidth) == peak
    assert attainable_flops(0, peak, bandwidth) == 0


@pytest.mark.parametrize(
    ("args", "says"),
    [((-1, 1, 1), "intensity=-1"), ((1, None, 1), "peak=None"), ((1, 1, 0), "bandwidth=0")],
)
def test_the_roofline_refuses_bad_numbers(args, says):
    with pytest.raises(ValueError, match=says):
        attainable_flops(*args)
