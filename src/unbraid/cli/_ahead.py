"""Kernels that a second process compiles while this one scores: once in an installation, on two cores or more."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np

from unbraid.base.current_folder import importable
from unbraid.base.threads import n_cores, worker_environment

# The largest kernel of the metrics that wait for one, and about how many seconds of one core all of theirs take.
KERNELS = {
    "mig_exact": ("_shared.aggregate", "_visit", 1.0),
    "dci_lasso": ("_solvers.lasso", "fill_path", 1.6),
    "dci_forest": ("_solvers.forest", "_grow_nodes", 2.6),
    "dci_boosted": ("_solvers.boosting", "_iterate", 3.7),
    "nk": ("_solvers.perceptron", "_run_perceptron", 2.0),
    "mlp_accuracy": ("_solvers.perceptron", "_run_perceptron", 2.0),
    "elbo_terms": ("elbo_terms", "_log_sum", 0.9),
    "beta_vae_score": ("_shared.interventions", "_mean_differences", 0.2),
    "factor_vae_score": ("_shared.interventions", "_variances", 0.2),
}
# Those that a second process compiles, in the order in which a card needs them, while this one does with the first.
AHEAD = ("dci_boosted", "nk", "mlp_accuracy", "elbo_terms", "beta_vae_score", "factor_vae_score")
WAITED = 0.25  # of their seconds are waited for
START = (  # without collecting garbage: a tenth of the time, and the process ends soon
    "import gc, sys; gc.disable(); sys.path[:] = {}; "
    "from unbraid.base.current_folder import ignore_settings; ignore_settings(); "
    "from unbraid.cli._ahead import compile_kernels; compile_kernels({})"
)


@contextmanager
def compiled_ahead(metrics: Iterable[str]) -> Iterator[Callable[[str], None]]:
    """Have what these metrics need compiled by another process; yields what waits for one of them."""
    missing = [name for name in AHEAD if name in metrics and not _compiled(name)]
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


def compile_seconds(metrics: Iterable[str]) -> list[float]:
    """About how long each metric waits for its kernels on a card of all of them, in this order."""
    seconds, counted = [], set[str]()
    for name in metrics:
        _, kernel, alone = KERNELS.get(name, ("", "", 0.0))
        waits = bool(alone) and kernel not in counted and not _compiled(name)
        seconds.append(waits * alone * (WAITED if name in AHEAD and n_cores() > 1 else 1.0))
        counted.add(kernel)
    return seconds


def _compiled(metric: str) -> bool:
    module, kernel, _ = KERNELS[metric]
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
