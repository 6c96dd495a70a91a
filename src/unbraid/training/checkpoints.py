"""A member in the middle of its training, as one file."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from unbraid.base.errors import UnbraidError
from unbraid.files.checksum import BLANK, KEY, add_checksum, check_file
from unbraid.files.whole_files import atomic_write
from unbraid.training.population import TORCH, Diverged, MemberState

FORMAT = "3"
PLAIN = ("step", "counts", "seconds", "snapshots", "origin", "held_out", "stopped", "began")  # kept as JSON


class CheckpointError(UnbraidError, ValueError):
    """A checkpoint that cannot be continued: damaged, of another format, or of another training."""


@dataclass(eq=False)
class Checkpoint:
    """The progress of a member, with all that is needed to continue as if it had never stopped."""

    step: int = 0  # steps taken
    state: MemberState | None = None  # None: not begun
    curve_steps: list[int] = field(default_factory=list)
    curves: dict[str, list[float]] = field(default_factory=dict)  # means since the point before, NaN for none
    pending: dict[str, Tensor] = field(default_factory=dict)  # sums since the last point
    counts: dict[str, int] = field(default_factory=dict)  # numbers of steps in these sums
    diverged: Diverged | None = None
    seconds: float = 0.0
    snapshots: dict[str, list[float]] = field(default_factory=dict)  # by name, of equal lengths; "step" among them
    origin: tuple[str, int] | None = None  # the run that it continues, and how many steps that had taken
    held_out: dict[str, list[float]] = field(default_factory=dict)  # by name, of equal lengths; "step" among them
    best: MemberState | None = None  # weights at the best of these, where training stops by them
    stopped: bool = False  # early, by these
    began: float = field(default_factory=time.time)  # seconds since 1970


def save_checkpoint(path: Path, checkpoint: Checkpoint, facts: Mapping[str, str]) -> None:
    """Write the file whole or leave the one that was there."""
    tensors: dict[str, Tensor] = dict(checkpoint.state or {})
    tensors["curve_steps"] = torch.tensor(checkpoint.curve_steps, dtype=torch.int64)
    for name, values in checkpoint.curves.items():
        tensors[f"curve/{name}"] = torch.tensor(values, dtype=torch.float64)
    for name, value in checkpoint.pending.items():
        tensors[f"pending/{name}"] = value.reshape(())
    for name, value in (checkpoint.best or {}).items():
        tensors[f"best/{name}"] = value
    position = {
        **{name: getattr(checkpoint, name) for name in PLAIN},
        "curves": list(checkpoint.curves),  # the file does not keep the order of tensors
        "diverged": [checkpoint.diverged.step, checkpoint.diverged.reason] if checkpoint.diverged else None,
    }
    named = {f"is/{name}": value for name, value in facts.items()}
    metadata = {"format": FORMAT, "progress": json.dumps(position), KEY: BLANK, **named}
    with atomic_write(path) as temporary:
        temporary.write_bytes(save(tensors, metadata))
        add_checksum(temporary)


def load_checkpoint(path: Path, facts: Mapping[str, str]) -> Checkpoint:
    """The checkpoint in the file; without a file, that of a training that has not begun.

    Raises:
        CheckpointError: damaged, of another format, or of another training; the message names the difference.
    """
    if not path.exists():
        return Checkpoint()
    try:
        check_file(path)
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); delete it to train from the start") from None
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {metadata.get('format')}, this version of unbraid reads {FORMAT}; "
            "delete it to train from the start"
        )
    for name, value in facts.items():
        if (recorded := metadata.get(f"is/{name}")) != value:
            raise CheckpointError(f"{path} is of another training: its {name} is {recorded}, here it is {value}")
    position = json.loads(metadata["progress"])
    checkpoint = Checkpoint(**{name: position[name] for name in PLAIN})
    checkpoint.origin = tuple(position["origin"]) if position["origin"] else None
    checkpoint.diverged = Diverged(*position["diverged"]) if position["diverged"] else None
    checkpoint.curve_steps = tensors.pop("curve_steps").tolist()
    checkpoint.curves = {name: tensors.pop(f"curve/{name}").tolist() for name in position["curves"]}
    checkpoint.pending = {name: tensors.pop(f"pending/{name}") for name in position["counts"]}
    best = {name.removeprefix("best/"): tensors.pop(name) for name in list(tensors) if name.startswith("best/")}
    checkpoint.best, checkpoint.state = best or None, tensors
    return checkpoint


def precision_of(path: Path) -> str | None:
    """The precision of a checkpoint's training; None without a readable checkpoint."""
    try:
        with safe_open(path, "pt") as file:
            return json.loads((file.metadata() or {})["is/precision"])
    except (SafetensorError, OSError, KeyError, ValueError):
        return None  # `load_checkpoint` says what is wrong


def architecture(state: MemberState) -> str:
    """A digest of the names, shapes and types of a member's tensors, without those that PyTorch's optimizers keep."""
    rows = sorted(
        f"{name} {tuple(value.shape)} {value.dtype}"
        for name, value in state.items()
        if not name.startswith(f"{TORCH}/")
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
