"""Does bfloat16 change what is learned? Five seeds in single precision and the same five in bfloat16.

Run: python evidence/benchmarks/precision.py [--steps 2000] [--seeds 5] [--family beta_vae] [--processes 2] [--half]
     python evidence/benchmarks/precision.py --pace

Trains on the rendered sprites and prints, for every member, the negative ELBO in single precision on 2 048 images, the
number of informative latents (KL > 0.01) and the MIG of the codes. bfloat16 is within the spread of the seeds when the
difference of the means is below the standard deviation over seeds in single precision.

`--pace` takes steps of several networks in turn in both precisions, in this process and by one thread, on images of
noise, and prints milliseconds of the processor, median and least: by these `auto` chooses. ONEDNN_MAX_CPU_ISA=
AVX512_CORE_BF16 shows what a processor with AMX would take without it.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch

from unbraid.base.device import dtype_of
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import Space
from unbraid.data.image_dataset import FactorDataset, ImageShape
from unbraid.datasets import load
from unbraid.datasets.own_images import images_of
from unbraid.families.building import Member, build_member, structural_settings, weights_of
from unbraid.families.family_table import FAMILIES
from unbraid.metrics import mig
from unbraid.training.draws import Images
from unbraid.training.loop import Plan, Trained
from unbraid.training.population import make_context, make_population
from unbraid.training.workers import train_members

N_IMAGES = 2048
PACED: tuple[tuple[str, str, ImageShape, int], ...] = (
    ("vae", "dense", (8, 8, 1), 64), ("vae", "dense", (16, 16, 1), 64), ("vae", "dense", (32, 32, 1), 64),
    ("vae", "dense", (64, 64, 1), 64), ("vae", "dense", (64, 64, 3), 64), ("vae", "dense", (64, 64, 3), 256),
    ("vae", "dense_norm", (16, 16, 1), 64), ("vae", "dense_norm", (64, 64, 1), 64),
    ("vae", "dense_norm", (64, 64, 3), 256), ("factor_vae", "dense", (16, 16, 1), 64),
    ("vae", "conv", (32, 32, 1), 16), ("vae", "conv", (32, 32, 1), 64), ("vae", "conv", (64, 64, 3), 64),
    ("vae", "resnet", (32, 32, 1), 16),
)  # fmt: skip


@dataclass(frozen=True)
class Halved:
    """Every 2 x 2 pixels averaged."""

    dataset: FactorDataset

    @property
    def space(self) -> Space:
        return self.dataset.space

    @property
    def image_shape(self) -> ImageShape:
        height, width, channels = self.dataset.image_shape
        return height // 2, width // 2, channels

    def __len__(self) -> int:
        return len(self.dataset)

    def images(self, index: IntArray) -> UInt8Array:
        height, width, channels = self.image_shape
        blocks = self.dataset.images(index).reshape(len(index), height, 2, width, 2, channels)
        return blocks.mean(axis=(2, 4)).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--family", default="beta_vae")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--pace", action="store_true", help="times of a step, and nothing of what is learned")
    parser.add_argument("--half", action="store_true", help="images of 32 x 32, for a quarter of the time")
    options = parser.parse_args()
    if options.pace:
        print_paces()
        return
    dataset = Halved(load("sprites")) if options.half else load("sprites")
    defaults = {name: each.default for name, each in FAMILIES[options.family].hyperparameters.items()}
    members = [Member(seed, {**defaults, "learning_rate": options.learning_rate}) for seed in range(options.seeds)]
    print(f"{'precision':<12}{'seed':>5}{'-ELBO':>10}{'informative':>13}{'MIG':>8}{'ms/step':>9}")
    rows: dict[str, list[list[float]]] = {}
    for precision in ("float32", "bfloat16"):
        plan = Plan(options.family, options.steps, device="cpu", precision=precision)
        for number, trained in train_members(plan, members, dataset, processes=options.processes):
            row = measured(options.family, members[number], trained, dataset)
            rows.setdefault(precision, []).append(row)
            pace = 1000 * trained.seconds / options.steps
            print(f"{precision:<12}{number:>5}{row[0]:>10.3f}{row[1]:>13.0f}{row[2]:>8.4f}{pace:>9.1f}", flush=True)
    for index, name in enumerate(("-ELBO", "informative", "MIG")):
        single, half = (np.array(rows[precision])[:, index] for precision in ("float32", "bfloat16"))
        spread = f"{single.mean():.4f} +- {single.std(ddof=1):.4f} and {half.mean():.4f} +- {half.std(ddof=1):.4f}"
        print(f"{name}: {spread}")


def print_paces() -> None:
    torch.set_num_threads(1)
    print(
        f"{'family':<12}{'network':<12}{'images':<14}{'batch':>6}{'weights':>10}{'float32':>16}{'bfloat16':>16}{'ratio':>7}"
    )
    for family, network, shape, batch_size in PACED:
        row = FAMILIES[family]
        member = Member(0, {name: each.default for name, each in row.hyperparameters.items()} | {"network": network})
        dataset = images_of(np.random.default_rng(0).integers(0, 256, (256, *shape), dtype=np.uint8))
        context = make_context(row, [member], dataset, batch_size=batch_size, steps=1_000_000)
        cpu = torch.device("cpu")
        both = [
            make_population(row, [member], dataset, context, device=cpu, precision=dtype_of(precision))
            for precision in ("float32", "bfloat16")
        ]
        times: list[list[float]] = []
        while len(times) < 10 or sum(map(sum, times)) < 6:
            times.append([])
            for population in both:
                began = time.process_time()
                population.advance(len(times))
                times[-1].append(time.process_time() - began)
        usual, least = 1000 * np.median(times[3:], axis=0), 1000 * np.min(times[3:], axis=0)
        count = sum(value.numel() for value in weights_of(row, shape, context.settings, 0).values())
        told = "".join(f"{middle:>9.2f}{low:>7.2f}" for middle, low in zip(usual, least, strict=True))
        print(
            f"{family:<12}{network:<12}{'x'.join(map(str, shape)):<14}{batch_size:>6}{count / 1e6:>9.2f}M"
            f"{told}{usual[0] / usual[1]:>7.2f}",
            flush=True,
        )


def measured(name: str, member: Member, trained: Trained, dataset: FactorDataset) -> list[float]:
    family = FAMILIES[name]
    settings = structural_settings(family, [member])
    modules = build_member(family, dataset.image_shape, settings, member.seed).eval()
    modules.load_state_dict(trained.weights)
    positions = np.random.default_rng(0).choice(len(dataset), N_IMAGES, replace=False)
    images = Images(dataset, torch.device("cpu"))(torch.from_numpy(positions))
    with torch.no_grad():
        means, log_variances = family.encode(modules, images, settings)
        assert log_variances is not None
        noise = torch.randn(means.shape, generator=torch.Generator().manual_seed(0))
        logits = modules["vae"].decode(means + noise * (log_variances / 2).exp())  # pyright: ignore[reportCallIssue]
        fit = torch.nn.functional.binary_cross_entropy_with_logits(logits, images, reduction="sum") / N_IMAGES
        kl = 0.5 * (means**2 + log_variances.exp() - log_variances - 1).mean(0)
    score = mig(means.numpy(), dataset.space.factors(positions)).score
    return [float(fit + kl.sum()), float((kl > 0.01).sum()), score]


if __name__ == "__main__":
    main()
