"""Train a network, an objective and a family of your own.

Each is named as "module:object", and is then trained, stacked, resumed and opened like
those of the package: from Python, as here; by `unbraid train own_family:SPARSE_VAE`;
or as `name: own_family:SPARSE_VAE` among the families of a study.
"""

import math

import torch
from torch import nn

import unbraid
from unbraid.families import (
    COMMON,
    IMAGES,
    NOISE,
    Family,
    Hyperparameter,
    OptimizerStep,
    build_vae,
    decode_vae,
    encode_vae,
    outputs_and_reconstruction,
)
from unbraid.runs.run_traversals import traverse
from unbraid.show import plot_traversals


def small_pair(shape, n_outputs, n_latents):
    """A network: one hidden layer each way."""
    inner = (shape[2], *shape[:2])
    n_inputs = math.prod(inner)
    down = [nn.Flatten(), nn.Linear(n_inputs, 32), nn.Tanh(), nn.Linear(32, n_outputs)]
    up = [nn.Linear(n_latents, 32), nn.Tanh(), nn.Linear(32, n_inputs)]
    return nn.Sequential(*down), nn.Sequential(*up, nn.Unflatten(1, inner))


def sparse(modules, batch, hyper, step, context, *, weight=0.1):  # noqa: ARG001
    """An objective for a VAE, which draws its means to 0 by their absolute values."""
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    mean, log_variance = outputs.mean, outputs.log_variance
    kl = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(-1).mean()
    penalty = mean.abs().sum(-1).mean()
    loss = reconstruction.mean() + kl + torch.as_tensor(weight) * penalty
    logs = {"reconstruction": reconstruction.mean(), "kl": kl, "penalty": penalty}
    return loss, logs, {}


def sparse_loss(modules, batch, hyper, step, context):
    """The same as a loss of a family, which has its weight as a hyperparameter."""
    weight = hyper["weight"]
    return sparse(modules, batch, hyper, step, context, weight=weight)


SPARSE_VAE = Family(
    title="VAE with sparse means",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), sparse_loss, (IMAGES, NOISE)),),
    hyperparameters={
        **COMMON,
        "weight": Hyperparameter(0.1, "of the penalty", 0.0, 1e3),
    },
    encode=encode_vae,
    decode=decode_vae,
    source="this example",
)

if __name__ == "__main__":
    square = {"name": "square", "positions": 16, "shrink": 4}
    network = "own_family:small_pair"
    settings = {"latents": 3, "steps": 100, "learning_rate": 1e-2, "out": "runs"}
    for family in ("own_family:sparse", "own_family:SPARSE_VAE"):
        runs = unbraid.train(
            family, square, weight=[0.1, 1], network=network, processes=0, **settings
        )
        print(family, [f"{run.status['last']['penalty']:.3f}" for run in runs])
    # A folder may name anything: whoever opens it names the code that it may execute.
    run = unbraid.load_run(runs[0].path, trust=["own_family:SPARSE_VAE", network])
    found = traverse(run, rows=2, steps=7, shown=14)
    figure = plot_traversals(
        found.images, found.originals, found.reconstructions, captions=found.captions
    )
