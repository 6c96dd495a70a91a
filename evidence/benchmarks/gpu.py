"""Models trained at once on a GPU, beside the same models one by one and beside a plain PyTorch loop.

    python evidence/benchmarks/gpu.py [--models 64] [--steps 30] [--rounds 3] [--json FILE]

Milliseconds of a step, the fastest of the rounds, which take turns; every row trains beta-VAEs on images of noise.

- plain: one model; PyTorch's own layers, `loss.backward()` and `torch.optim.Adam`, images and noise ready in memory.
- one: one model as `unbraid.train` trains it, fetching images and drawing noise included.
- all: so many at once, likewise. Ratios are of plain and of one, times the number of models, to this.

No metric uses a GPU: scores of codes that lie on one are computed on the CPU.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from unbraid.base.device import dtype_of, reproducible
from unbraid.datasets.own_images import images_of
from unbraid.families.building import Member, build_member
from unbraid.families.family_table import FAMILIES
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.vae import beta_vae
from unbraid.training.population import make_context, make_population

GPU = torch.device("cuda")
FAMILY = FAMILIES["beta_vae"]
DEFAULTS = {name: each.default for name, each in FAMILY.hyperparameters.items()}
N_IMAGES, WARM = 4096, 10
KINDS = (("dense", 16, 1, 64), ("conv", 16, 1, 16), ("conv", 64, 1, 64), ("conv", 64, 3, 64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    given = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {given.models} models, ms per step")
    print(f"{'':<32}{'plain':>8}{'one':>8}{'all':>8}{'plain/all':>11}{'one/all':>9}{'GiB':>7}")
    rows = []
    for network, side, channels, batch in KINDS:
        for precision in ("float32", "tf32", "bfloat16"):
            torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
            made = measured(network, side, channels, batch, precision.replace("tf32", "float32"), given)
            many = given.models / made["all"]
            made |= {"plain/all": made["plain"] * many, "one/all": made["one"] * many}
            rows.append(made)
            name = f"{network} {side}x{side}x{channels}, {batch}, {precision}"
            text = "".join(f"{made[key]:>8.2f}" for key in ("plain", "one", "all"))
            print(f"{name:<32}{text}{made['plain/all']:>11.1f}{made['one/all']:>9.1f}{made['gib']:>7.1f}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


def measured(
    network: str, side: int, channels: int, batch: int, precision: str, given: argparse.Namespace
) -> dict[str, float]:
    rng = np.random.default_rng(0)
    dataset = images_of(rng.integers(0, 256, (N_IMAGES, side, side, channels), dtype=np.uint8))
    members = [Member(seed, {**DEFAULTS, "network": network}) for seed in range(given.models)]
    context = make_context(FAMILY, members, dataset, batch_size=batch, steps=1_000_000)

    def ours(number: int) -> Callable[[int], object]:
        chosen = members[:number]
        return make_population(FAMILY, chosen, dataset, context, device=GPU, precision=dtype_of(precision)).advance

    modules = build_member(FAMILY, (side, side, channels), context.settings, 0).eval().to(GPU)  # eval: PyTorch's layers
    images = torch.from_numpy(dataset.images(np.arange(batch))).movedim(-1, 1).float().div(255).contiguous().to(GPU)
    noise, optimizer = torch.randn(batch, 10, device=GPU), torch.optim.Adam(modules.parameters(), lr=1e-4)

    def plain(_: int) -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
            outputs = modules["vae"](images, noise)
            loss, _logs = beta_vae(outputs, bernoulli_nll(outputs.decoded, images), beta=4.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    with reproducible(GPU):
        steps = {"one": ours(1)}
        torch.cuda.reset_peak_memory_stats()
        steps["all"] = ours(given.models)
        pace(steps["all"], 1)
        gib = torch.cuda.max_memory_allocated() / 2**30
        times = {name: [pace(step, given.steps) for _ in range(given.rounds)] for name, step in steps.items()}
    times["plain"] = [pace(plain, given.steps) for _ in range(given.rounds)]
    return {**{name: min(each) for name, each in times.items()}, "gib": gib}


def pace(step: Callable[[int], object], steps: int, warm: int = WARM) -> float:
    for number in range(warm):
        step(number)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for number in range(warm, warm + steps):
        step(number)
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began) / steps


if __name__ == "__main__":
    main()
