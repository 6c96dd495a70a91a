"""The library leaves the process that imports it as it is."""

import os
import subprocess
import sys

import pytest

# What the libraries that are used here change by themselves, such as the filters of warnings, they have changed before.
SCRIPT = """
import importlib, os, signal, sys, threading, warnings
import dateutil.parser, matplotlib, numba, numpy
import scipy.linalg, scipy.optimize, scipy.sparse, scipy.stats, sklearn.linear_model

def state():
    return {
        "sys.path": list(sys.path),
        "sys.meta_path": list(sys.meta_path),
        "os": dict(vars(os)),
        "os.path": dict(vars(os.path)),
        "os.environ": dict(os.environ),
        "numba.config": {name: value for name, value in vars(numba.config).items() if name.isupper()},
        "matplotlib.rcParams": dict(matplotlib.rcParams),
        "warnings.filters": list(warnings.filters),
        "warnings.showwarning": warnings.showwarning,
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "threads": threading.enumerate(),
    }

def assert_unchanged(before):
    after = state()
    assert not [name for name in before if before[name] != after[name]]

numba.config.THREADING_LAYER = "workqueue"
before = state()
import unbraid
assert_unchanged(before)
codes = numpy.random.default_rng(0).normal(size=(60, 2))
unbraid.score(codes, codes, metrics=["mig", "snc"])
assert_unchanged(before)
"""


@pytest.mark.lengthy
def test_importing_and_scoring_change_nothing_in_the_host() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
