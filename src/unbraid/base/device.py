"""Where and in which precision to train."""

import errno
import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import torch

Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float64"]

DENSE_GAINS = 1 << 28  # weights times images of a batch, from where on dense networks are faster in bfloat16

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


def choose_device(name: str = "auto") -> torch.device:
    """`auto` is CUDA where there is one, else the CPU.

    Raises:
        ValueError: no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(name, str | torch.device):
        raise ValueError(f"device must be a name, such as 'auto', 'cpu' or 'cuda'; got {name!r}")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # "meta" has room for no value
    except (RuntimeError, AssertionError, ImportError) as error:
        unknown = "Expected one of" in str(error)  # PyTorch lists what it may be built for anywhere
        reason = "use auto, cpu or cuda" if unknown else str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device {name!r} cannot be used here: {reason}") from None
    return device


def check_unnumbered(name: str) -> None:
    """Raises ValueError for one of several devices, "cuda:1": a run's id has the kind of its device alone."""
    kind, colon, number = name.partition(":")
    if colon:
        raise ValueError(f"device {name!r}: write {kind}, and CUDA_VISIBLE_DEVICES={number} for that one of several")


def visible_devices() -> list[str]:
    """The CUDA devices that this process may use, as `CUDA_VISIBLE_DEVICES` of another names each."""
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    count = torch.cuda.device_count()
    return named[:count] or [str(number) for number in range(count)]


def choose_precision(name: str, device: torch.device) -> str:
    """The precision that `auto` stands for: bfloat16 on a CPU that multiplies it faster, else float32.

    What gains nothing by it takes float32 all the same: see `gains_by_bfloat16`.

    Raises:
        ValueError: no such precision.
    """
    if name == "auto":
        return "bfloat16" if device.type == "cpu" and _multiplies_bfloat16() else "float32"
    if name not in _DTYPES:
        raise ValueError(f"precision {name!r}: one of auto, {', '.join(_DTYPES)}")
    return name


def gains_by_bfloat16(weights: Iterable[torch.Tensor], batch_size: int) -> bool:
    """Whether a step of such networks is shorter in bfloat16 where that is multiplied fast, by what they are alone.

    Convolutions gain. In dense networks the casts cost more than the products save, until weights times images of a
    batch are 2^28 (measured: `evidence/benchmarks/precision.py --pace`).
    """
    shapes = [tuple(weight.shape) for weight in weights]
    return any(len(shape) == 4 for shape in shapes) or batch_size * sum(map(math.prod, shapes)) >= DENSE_GAINS


def dtype_of(precision: str) -> torch.dtype:
    return _DTYPES[precision]


NO_ROOM = ("allocate memory", "failed to map segment", "bad_alloc", "can't start new thread")  # of who has no class
LESS = "a smaller batch_size, smaller networks, or fewer processes at a time need less"


def out_of_memory(error: BaseException | None) -> bool:
    """Whether the device, or the machine, had no memory left for this, or for what it came of."""
    seen: set[int] = set()  # an error may be its own cause
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        known = isinstance(error, MemoryError | torch.OutOfMemoryError) or getattr(error, "errno", 0) == errno.ENOMEM
        if known or any(text in str(error) for text in NO_ROOM):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def memory_advice() -> Iterator[None]:
    """Raises OSError, with what helps, where the block runs out of memory."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        what = " ".join(str(error).split())
        raise OSError(f"out of memory: {LESS} ({what})") from error


GENERATOR = threading.RLock()  # for who seeds torch's own generator, of which there is one for all threads

_guard = threading.Lock()
_at_work: list[torch.device] = []  # of the blocks that are to be reproducible now
_restored = ExitStack()  # what was set before the first of them


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """What comes out within the block is the same whatever its surroundings have set in torch.

    One thread, since their number changes the order of sums; deterministic kernels; single precision and the CPU for
    tensors of which nothing is said; no autocast. Torch has one number of threads and one precision for the process: of
    blocks that overlap, as in threads, the last one restores them.
    """
    with _guard:
        if not _at_work:
            _restored.callback(torch.set_num_threads, torch.get_num_threads())
            _restored.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
            for name, value in (("deterministic", True), ("benchmark", False)):
                # Not by `cudnn.flags`, which turns cuDNN off and TF32 on unless told otherwise.
                _restored.callback(setattr, torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
                setattr(torch.backends.cudnn, name, value)
        if device.type == "cpu":
            torch.set_num_threads(1)
        _at_work.append(device)
    with ExitStack() as undone:
        # Only where there is something to undo: these contexts slow operations down, or keep weights that are cast.
        if torch.get_default_device().type != "cpu":
            undone.enter_context(torch.device("cpu"))
        if torch.is_autocast_enabled(device.type):
            undone.enter_context(torch.autocast(device.type, enabled=False))
        try:
            yield
        finally:
            with _guard:
                _at_work.remove(device)
                if not _at_work:
                    _restored.close()


def _multiplies_bfloat16() -> bool:
    processor = Path("/proc/cpuinfo")
    return processor.exists() and faster_in_bfloat16(processor.read_text())


def faster_in_bfloat16(cpuinfo: str) -> bool:
    """Whether convolutions are faster in bfloat16 on the processor that Linux describes so.

    They are with AMX, and with AVX-512's products on AMD's; with these alone Intel's take a third longer.
    """
    lines = [line.partition(":") for line in cpuinfo.splitlines()]
    fields = {name.strip(): value.split() for name, _, value in reversed(lines)}
    flags = fields.get("flags", [])
    return "amx_bf16" in flags or ("avx512_bf16" in flags and fields.get("vendor_id") == ["AuthenticAMD"])
