"""Small studies, and networks and metrics that go wrong."""

import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from unbraid.families.networks import dense_pair
from unbraid.studies.expand import expand
from unbraid.studies.schema import StudyConfig, checked, mapping
from unbraid.studies.snapshot import Planned
from unbraid.studies.study_record import StudyPart

SMALL = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families:
  - {name: beta_vae, beta: [1, 4], network: dense, latents: 3}
  - {name: pca, latents: 3}
seeds: 2
steps: 6
batch_size: 8
precision: float32
device: cpu
metrics: [mig, dci_lasso]
"""


def parse(text: str, where: str = "study.yaml") -> StudyConfig:
    """The study that a YAML text describes."""
    return checked(StudyConfig, mapping(text, where), where)


def planned_runs(part: StudyPart) -> list[Planned]:
    """The runs of the YAML, done or not."""
    return expand(part.config, part.environment())


def written(folder: Path, text: str = SMALL) -> Path:
    """The YAML file."""
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def same_but_for_times(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """To the bit, in every column but the seconds that runs took, and the commit, which an edit makes dirty."""
    changing = ["seconds", "commit"]
    pd.testing.assert_frame_equal(first.drop(columns=changing), second.drop(columns=changing), check_exact=True)
    return True


class FailingLater(nn.Module):
    """A dense encoder, of which a pass ends badly: the fourth, which no rehearsal comes to."""

    def __init__(self, encoder: nn.Module, happens: Any) -> None:
        super().__init__()
        self.encoder, self.happens, self.passes = encoder, happens, 0

    def forward(self, images: Tensor) -> Tensor:
        self.passes += 1
        if self.passes > 3:
            self.happens()
        return self.encoder(images)


def _refuse() -> None:
    raise RuntimeError("the network\nwill not")


def _memory() -> None:
    torch.empty(1 << 50)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refusing(*arguments: Any) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(*arguments)
    return FailingLater(encoder, _refuse), decoder


def hanging(*arguments: Any) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(*arguments)
    return FailingLater(encoder, lambda: time.sleep(3000)), decoder


def greedy(*arguments: Any) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(*arguments)
    return FailingLater(encoder, _memory), decoder


def dying(*arguments: Any) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(*arguments)
    return FailingLater(encoder, _die), decoder


def enormous(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    wide = 10**15
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), wide), nn.Linear(wide, n_outputs))
    return encoder, dense_pair(shape, n_outputs, n_latents)[1]


def spread(codes: np.ndarray, factors: np.ndarray) -> float:  # noqa: ARG001
    return float(codes.std())


def slow(codes: np.ndarray, factors: np.ndarray) -> float:  # noqa: ARG001
    time.sleep(300)
    return 0.0


def broken(codes: np.ndarray, factors: np.ndarray) -> float:  # noqa: ARG001
    raise ZeroDivisionError("nothing to divide by")
