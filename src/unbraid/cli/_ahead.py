"""Kernels that a second process compiles while this one scores: once in an installation, on two cores or more."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np

from unbraid.base.current_folder import importable
from unbraid.base.threads import n_cores, worker_environment

# The metrics that wait longest for their kernels, and the largest of these, in the order in which a card needs them.
KERNELS = {
    "dci_boosted": ("_solvers.boosting", "_iterate"),
    "nk": ("_solvers.perceptron", "_run_perceptron"),
    "mlp_accuracy": ("_solvers.perceptron", "_run_perceptron"),
    "elbo_terms": ("elbo_terms", "_log_sum"),
    "beta_vae_score": ("_shared.interventions", "_mean_differences"),
    "factor_vae_score": ("_shared.interventions", "_variances"),
}
START = (  # without collecting garbage: a tenth of the time, and the process ends soon
    "import gc, sys; gc.disable(); sys.path[:] = {}; "
    "from unbraid.base.current_folder import ignore_settings; ignore_settings(); "
    "from unbraid.cli._ahead import compile_kernels; compile_kernels({})"
)


@contextmanager
def compiled_ahead(metrics: Iterable[str]) -> Iterator[Callable[[str], None]]:
    """Have what these metrics need compiled by another process; yields what waits for one of them."""
    missing = [name for name in KERNELS if name in metrics and not _compiled(*KERNELS[name])]
    if n_cores() == 1 or not missing:
        yield lambda _: None
        return
    with subprocess.Popen(
        [sys.executable, "-P", "-c", START.format(importable(), missing)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=worker_environment(), text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        compiled = iter(process.stdout.readline, "")  # if it fails, this process compiles what is missing

        def wait(name: str) -> None:
            if name in missing:
                for line in compiled:
                    if line.strip() in missing:  # not what else a Python prints as it starts
                        missing.remove(line.strip())
                    if name not in missing:
                        break

        try:
            yield wait
        finally:
            process.kill()


def _compiled(module: str, kernel: str) -> bool:
    return getattr(import_module(f"unbraid.metrics.{module}"), kernel).stored()


def compile_kernels(metrics: Iterable[str]) -> None:
    """Run metrics on a few rows, printing the name of each once its kernels are stored."""
    import unbraid.metrics

    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (300, 2))
    codes = factors + rng.normal(size=factors.shape)
    for name in metrics:
        variances = {"log_variances": np.zeros(codes.shape)} if name == "elbo_terms" else {}
        getattr(unbraid.metrics, name)(codes, factors, **variances)
        print(name, flush=True)
