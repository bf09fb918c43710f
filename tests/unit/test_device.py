"""course_utils.device on this machine, and on pretend machines with and without a GPU."""

import os
from types import SimpleNamespace

import pytest
import torch

from course_utils import device as devices


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Pretend: machine(cuda=2) has two CUDA devices, machine(mps=True) an Apple GPU."""
    monkeypatch.delenv("COURSE_DEVICE", raising=False)

    def pretend(cuda: int = 0, mps: bool = False, current: int = 0, built_for: str | None = "13.0") -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
        monkeypatch.setattr(torch.version, "cuda", built_for)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return pretend


def test_the_fastest_device_is_picked(machine):
    machine(cuda=1, mps=True)
    assert devices.pick_device() == torch.device("cuda:0")
    machine(mps=True)
    assert devices.pick_device() == torch.device("mps:0")
    machine()
    assert devices.pick_device() == torch.device("cpu")


def test_the_name_wins_over_the_environment_which_wins_over_the_machine(machine, monkeypatch):
    machine(cuda=2)
    monkeypatch.setenv("COURSE_DEVICE", " CUDA:1 ")
    assert devices.pick_device() == torch.device("cuda:1")
    assert devices.pick_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("COURSE_DEVICE", "")
    assert devices.pick_device() == torch.device("cuda:0")


def test_plain_cuda_means_the_current_device(machine):
    machine(cuda=4, current=2)
    assert devices.pick_device("cuda") == torch.device("cuda:2")


@pytest.mark.parametrize(
    ("name", "built_for", "says"),
    [
        ("cuda", None, "was built without CUDA. Use 'cpu', or install"),
        ("cuda:0", "13.0", "finds no usable GPU. Use 'cpu', or see whether nvidia-smi"),
        ("mps", None, "no Apple GPU"),
    ],
)
def test_a_device_that_is_absent_is_a_clear_error(machine, name, built_for, says):
    machine(built_for=built_for)
    with pytest.raises(RuntimeError, match=says) as error:
        devices.pick_device(name)
    assert repr(name) in str(error.value)


def test_the_error_names_the_environment_variable(machine, monkeypatch):
    machine()
    monkeypatch.setenv("COURSE_DEVICE", "cuda")
    with pytest.raises(RuntimeError, match="environment variable COURSE_DEVICE was given 'cuda'"):
        devices.pick_device()


def test_an_index_too_high_says_what_there_is(machine):
    machine(cuda=2)
    with pytest.raises(RuntimeError, match=r"'cuda:2', but 2 .* use 'cuda:0' to cuda:1"):
        devices.pick_device("cuda:2")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "meta", "H100", "cpu cuda"])
def test_a_name_of_no_device_is_a_clear_error(machine, name):
    machine(cuda=1)
    with pytest.raises(ValueError, match="expected 'cpu', 'cuda'"):
        devices.pick_device(name)


def test_a_tensor_made_on_the_device_reports_that_device(monkeypatch):
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    device = devices.pick_device()
    assert torch.zeros(1, device=device).device == device


def test_on_gpu_is_true_for_cuda_and_mps_and_false_for_the_cpu():
    assert devices.on_gpu("cuda:1") and devices.on_gpu("mps") and not devices.on_gpu(torch.device("cpu"))


def test_synchronize_calls_the_right_backend(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: calls.append(str(device)))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: calls.append("mps"))
    devices.synchronize("cpu")
    assert calls == []
    devices.synchronize("cuda:1")
    devices.synchronize(torch.device("mps"))
    assert calls == ["cuda:1", "mps"]
    with pytest.raises(ValueError, match="'meta'"):
        devices.synchronize("meta")


def test_describe_gives_the_cpus_name_threads_memory_and_torch():
    line = devices.describe("cpu")
    assert "\n" not in line
    assert torch.__version__ in line and f"{torch.get_num_threads()} threads" in line and "GiB" in line
    assert devices.device_name("cpu") in line


def test_describe_gives_a_gpus_name_memory_multiprocessors_and_torch(monkeypatch):
    properties = SimpleNamespace(total_memory=150_000_000_000, multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert devices.describe("cuda:0") == (
        f"NVIDIA H200 (cuda:0) · 150 GB = 140 GiB · 132 SMs · torch {torch.__version__}"
    )


def test_a_system_that_hides_its_processor_is_still_described(monkeypatch):
    def hidden(*args, **kwargs):
        raise OSError("not here")

    monkeypatch.setattr(devices.Path, "read_text", hidden)
    monkeypatch.setattr(os, "sysconf", hidden)
    monkeypatch.setattr(devices.platform, "processor", lambda: "")
    monkeypatch.setattr(devices.platform, "machine", lambda: "riscv64")
    assert devices.describe("cpu").startswith("riscv64 (cpu) · ")
    assert devices.total_memory("cpu") is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int64])
def test_require_accepts_dtypes_that_the_cpu_supports(dtype):
    devices.require(dtype, "cpu")
    devices.require(dtype, torch.device("cpu"))


@pytest.mark.parametrize("error", [TypeError, RuntimeError, NotImplementedError, AssertionError])
def test_require_says_what_to_do_about_a_dtype_that_the_device_lacks(monkeypatch, error):
    class Tensor:
        def to(self, dtype):
            raise error("Trying to convert Float8_e4m3fn to the MPS backend but it does not support it.\nmore")

    monkeypatch.setattr(torch, "ones", lambda *shape, device: Tensor())
    with pytest.raises(RuntimeError, match=r"torch.float8_e4m3fn on 'mps'.*does not support it\.\).*device 'cpu' here"):
        devices.require(torch.float8_e4m3fn, "mps")
    with pytest.raises(RuntimeError, match="install a newer torch"):
        devices.require(torch.float8_e4m3fn, "cpu")


@pytest.mark.skipif(torch.backends.mps.is_built(), reason="needs a torch that knows nothing of MPS")
def test_require_quotes_only_the_first_sentence_of_a_long_reason():
    with pytest.raises(RuntimeError, match=r"on 'mps'.*from the 'MPS' backend\)\. Use another dtype") as caught:
        devices.require(torch.bfloat16, "mps")
    assert len(str(caught.value)) < 300


def test_require_refuses_a_string_instead_of_a_dtype():
    with pytest.raises(TypeError, match=r"'fp8' as a dtype; expected a torch\.dtype"):
        devices.require("fp8", "cpu")
