"""Milliseconds per training step of one beta-VAE, beside a plain loop and pythae.

Run: python evidence/benchmarks/training.py [--steps 60] [--rounds 3] [--json FILE]

The shared architecture on rendered sprites (64 x 64 x 1, batch 64, 10 latents, Bernoulli likelihood, Adam), 6.2 GFLOP a
step. Every row runs in a fresh process with one thread, the rows take turns, and the fastest step of all rounds counts:
other work on the machine slows every row alike. `CPU` is processor time, which such work does not inflate.

- plain: contiguous tensors, `loss.backward()`, `torch.optim.Adam`; PyTorch's layers, images and noise ready in memory.
- pythae: its BetaVAE around the same encoder and decoder, as its trainer steps it, images in memory. Where installed.
- unbraid: everything a step of `unbraid.train` does, fetching and casting images and drawing noise included, in the
  environment of its worker processes.
- convolutions: the convolutions of the same step alone, forward and backward by oneDNN's kernels, channels last in
  memory, inputs and gradients there already: what is left of a step where all around them costs nothing.
- dense: a beta-TCVAE of the small dense pair on sprites of 16 x 16, where what surrounds the networks weighs most: a
  plain loop that draws and fetches as well, with the estimator as its equation reads, and ours.
- dense arithmetic: the matrix products of that step alone, forward and backward, the images that it fetches and Adam:
  what is left of it where all around them costs nothing.
- two processes: as many steps in two workers at once, on two cores; the ratio is that of steps per second to one.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.device import choose_precision, dtype_of
from unbraid.base.threads import worker_environment
from unbraid.datasets import load
from unbraid.families import Context
from unbraid.families.building import Member, build_member, structural_settings
from unbraid.families.divergences import log_normal
from unbraid.families.family_table import FAMILIES
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.vae import beta_vae
from unbraid.training.population import make_population

CPU = torch.device("cpu")
BATCH, WARM = 64, 5
FAMILY = FAMILIES["beta_vae"]
MEMBER = Member(0, {name: each.default for name, each in FAMILY.hyperparameters.items()})
SETTINGS = structural_settings(FAMILY, [MEMBER])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    parser.add_argument("--only", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        torch.set_num_threads(1)
        print(json.dumps(timed(ROWS[options.only](), options.steps)))
        return
    names = [name for name in ROWS if "pythae" not in name or find_spec("pythae")]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            times[name] += finished(started(name, options.steps))
    best = {name: tuple(1000 * min(each[k] for each in times[name]) for k in (0, 1)) for name in names}
    usual = {name: 1000 * float(np.median([cpu for _, cpu in times[name]])) for name in names}
    header = f"{'':<24}{'ms/step':>9}{'CPU':>9}{'median':>9}{'plain /':>10}"
    print(header + f"{'pythae /':>10}" * ("pythae" in best))
    for name, (wall, cpu) in best.items():
        beside = best["dense plain" if name.startswith("dense") else "plain"][1]
        ratios = [beside / cpu, *(best[name][1] / cpu for name in ("pythae",) if name in best)]
        row = f"{name:<24}{wall:>9.1f}{cpu:>9.1f}{usual[name]:>9.1f}"
        print(row + "".join(f"{ratio:>10.2f}" for ratio in ratios))
    fastest = f"unbraid {choose_precision('auto', CPU)}"
    gains = [two_cores(fastest, options.steps) for _ in range(options.rounds)]
    print(f"two processes, {fastest}: {max(gains):.2f} times the steps per second of one")
    if options.json:
        options.json.write_text(json.dumps({**best, "two processes": max(gains)}, indent=1) + "\n")


def two_cores(name: str, steps: int) -> float:
    """Median paces, as the fastest step of two processes may fall where the other still starts."""
    alone = np.median([wall for wall, _ in finished(started(name, steps))])
    both = [started(name, steps) for _ in range(2)]
    paces = [np.median([wall for wall, _ in finished(process)]) for process in both]
    return float(sum(alone / pace for pace in paces))


def started(name: str, steps: int) -> "subprocess.Popen[str]":
    environment = worker_environment() if "unbraid" in name or "convolutions" in name else dict(os.environ)
    command = [sys.executable, __file__, "--only", name, "--steps", str(steps)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finished(process: "subprocess.Popen[str]") -> list[tuple[float, float]]:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a row failed with {process.returncode}")
    return json.loads(output.splitlines()[-1])


def timed(step: Callable[[int], object], steps: int) -> list[tuple[float, float]]:
    times = []
    for number in range(WARM + steps):
        wall, cpu = time.perf_counter(), time.process_time()
        step(number)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times[WARM:]


def ours(precision: str) -> Callable[[int], object]:
    dataset = load("sprites")
    context = Context(SETTINGS, len(dataset), BATCH, 1_000_000)
    population = make_population(FAMILY, [MEMBER], dataset, context, device=CPU, precision=dtype_of(precision))
    return population.advance


def convolutions(precision: str) -> Callable[[int], object]:
    """Each is a convolution and both its gradients; a transposed one is the same kernels in another order."""
    dtype, shapes = dtype_of(precision), [(1, 32, 64), (32, 32, 32), (32, 64, 16), (64, 64, 8)]
    geometry = ((2, 2), (1, 1), (1, 1), False, (0, 0), 1)

    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape).to(dtype, memory_format=torch.channels_last)

    layers = [
        (tensor(BATCH, outer, side, side), tensor(BATCH, inner, side // 2, side // 2), tensor(inner, outer, 4, 4))
        for outer, inner, side in shapes
    ]
    biases = [torch.randn(inner).to(dtype) for _, inner, _ in shapes]

    def step(_: int) -> None:
        for (fine, coarse, weight), bias in zip(layers, biases, strict=True):
            # Of the encoder; its first layer owes the images no gradient.
            nn.functional.conv2d(fine, weight, bias, 2, 1)
            wanted = (weight.shape[1] > 1, True, True)
            torch.ops.aten.convolution_backward(coarse, fine, weight, [len(bias)], *geometry, wanted)
            # Of the decoder: forward is the gradient of the images, the gradient of its input is forward.
            torch.ops.aten.convolution_backward(coarse, fine, weight, None, *geometry, (True, True, False))
            nn.functional.conv2d(fine, weight, None, 2, 1)

    return step


def batch() -> Tensor:
    images = load("sprites").images(np.random.default_rng(0).integers(0, 700_000, BATCH))
    return torch.from_numpy(images).movedim(-1, 1).float().div(255).contiguous()


def with_plain_layers() -> nn.ModuleDict:
    """In evaluation, which concerns no other layer here, `Halving` and `Doubling` are PyTorch's own."""
    modules = build_member(FAMILY, (64, 64, 1), SETTINGS, 0)
    return modules.eval()


def plain() -> Callable[[int], object]:
    modules = with_plain_layers()
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-4)
    images, noise = batch(), torch.randn(BATCH, 10)

    def step(_: int) -> None:
        outputs = modules["vae"](images, noise)
        loss, _ = beta_vae(outputs, bernoulli_nll(outputs.decoded, images), beta=4.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def pythae() -> Callable[[int], object]:
    from pythae.data.datasets import DatasetOutput
    from pythae.models import BetaVAE, BetaVAEConfig
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn import BaseDecoder, BaseEncoder

    vae = with_plain_layers()["vae"]

    class Encoder(BaseEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.layers = vae.encoder

        def forward(self, x: Tensor) -> ModelOutput:
            mean, log_variance = self.layers(x).chunk(2, dim=1)
            return ModelOutput(embedding=mean, log_covariance=log_variance)

    class Decoder(BaseDecoder):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(vae.decoder, nn.Sigmoid())

        def forward(self, z: Tensor) -> ModelOutput:
            return ModelOutput(reconstruction=self.layers(z))

    config = BetaVAEConfig(input_dim=(1, 64, 64), latent_dim=10, reconstruction_loss="bce", beta=4.0)
    model = BetaVAE(config, encoder=Encoder(), decoder=Decoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    images = batch()

    def step(_: int) -> None:
        optimizer.zero_grad()
        model(DatasetOutput(data=images)).loss.backward()
        optimizer.step()

    return step


DENSE = FAMILIES["beta_tcvae"]
SMALL = Member(0, {**{name: each.default for name, each in DENSE.hyperparameters.items()}, "network": "dense"})


def dense_ours() -> Callable[[int], object]:
    dataset = load("sprites", shrink=4)
    context = Context(structural_settings(DENSE, [SMALL]), len(dataset), BATCH, 1_000_000)
    return make_population(DENSE, [SMALL], dataset, context, device=CPU).advance


def dense_plain() -> Callable[[int], object]:
    dataset = load("sprites", shrink=4)
    modules = build_member(DENSE, dataset.image_shape, structural_settings(DENSE, [SMALL]), 0)
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-4)

    def step(_: int) -> None:
        positions = torch.randint(len(dataset), (BATCH,)).numpy()
        images = torch.from_numpy(dataset.images(positions)).float().div_(255).movedim(-1, 1)
        outputs = modules["vae"](images, torch.randn(BATCH, 10))
        of_all = log_normal(outputs.sample[:, None], outputs.mean[None], outputs.log_variance[None])
        n = math.log(BATCH * len(dataset))
        joint, marginals = of_all.sum(2).logsumexp(1) - n, (of_all.logsumexp(1) - n).sum(1)
        own = log_normal(outputs.sample, outputs.mean, outputs.log_variance).sum(1)
        prior = log_normal(outputs.sample, 0.0, 0.0).sum(1)
        parts = own - joint + 6.0 * (joint - marginals) + marginals - prior
        loss = (bernoulli_nll(outputs.decoded, images) + parts).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def dense_arithmetic() -> Callable[[int], object]:
    dataset = load("sprites", shrink=4)
    modules = build_member(DENSE, dataset.image_shape, structural_settings(DENSE, [SMALL]), 0)
    parameters = list(modules.parameters())
    layers = [module for module in modules.modules() if isinstance(module, nn.Linear)]
    inputs = [torch.randn(BATCH, layer.in_features) for layer in layers]
    outputs = [torch.randn(BATCH, layer.out_features) for layer in layers]
    gradients, first, second = ([torch.zeros_like(each) for each in parameters] for _ in range(3))

    @torch.no_grad()
    def step(number: int) -> None:
        dataset.images(torch.randint(len(dataset), (BATCH,)).numpy())
        for layer, given, owed in zip(layers, inputs, outputs, strict=True):
            nn.functional.linear(given, layer.weight, layer.bias)
            torch.mm(owed.t(), given)
            if layer is not layers[0]:  # which owes the images no gradient
                torch.mm(owed, layer.weight)
        torch.ops.aten._fused_adam_(
            parameters, gradients, first, second, [], [torch.tensor(number + 1.0)] * len(parameters),
            lr=1e-4, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False,
        )  # fmt: skip

    return step


ROWS: dict[str, Callable[[], Callable[[int], object]]] = {
    "plain": plain,
    "pythae": pythae,
    "unbraid float32": lambda: ours("float32"),
    "unbraid bfloat16": lambda: ours("bfloat16"),
    "convolutions float32": lambda: convolutions("float32"),
    "convolutions bfloat16": lambda: convolutions("bfloat16"),
    "dense plain": dense_plain,
    "dense unbraid": dense_ours,
    "dense arithmetic": dense_arithmetic,
}


if __name__ == "__main__":
    main()
