"""Trained probes against scikit-learn and PyTorch in the same run: seconds, ratios, and whether they learn alike.

    python evidence/benchmarks/probes.py            seconds of each probe and of its counterpart in scikit-learn
    python evidence/benchmarks/probes.py --torch    accuracies of our perceptrons and of PyTorch's, three seeds each
    python evidence/benchmarks/probes.py --ranks    60 synthetic models by `nk` and `mlp_accuracy`, annealed and as in the paper

One thread is used throughout, on the shipped example (10 000 samples of 10 codes; factors of 3, 6, 40, 32 and 32
levels). The first call compiles the kernels and is not counted; of the quick ones the best of three runs counts.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import explicitness, linear_accuracy, mlp_accuracy, nk, sap, snc
from unbraid.metrics._shared.probes import BATCH, EPOCHS_OF_PAPER, RATE_OF_PAPER, perceptrons
from unbraid.metrics._shared.sharing import sharing
from unbraid.metrics._shared.train_test_split import accuracies, standardised_codes, train_test_split

Split = tuple[FloatArray, FloatArray, IntArray, IntArray]
HIDDEN = 256


def splits(codes: FloatArray, factors: IntArray, seed: int = 0) -> list[Split]:
    """Standardised codes and levels of the very rows on which the metrics train and test, per factor."""
    rows = train_test_split(codes, factors, None, seed)
    standard, levels = standardised_codes(rows), rows.levels.levels
    return [
        (standard[rows.train], standard[rows.test], levels[rows.train, k], levels[rows.test, k])
        for k in range(len(rows.sizes))
    ]


def seconds(work: Callable[[], object], runs: int) -> tuple[float, object]:
    times = []
    result = None
    for _ in range(runs):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return min(times), result


def perceptrons_of_sklearn(parts: list[Split]) -> list[float]:
    accuracy = []
    for train, test, levels, true in parts:
        head = MLPClassifier(
            (HIDDEN,), alpha=0.0, batch_size=BATCH, learning_rate_init=RATE_OF_PAPER, max_iter=EPOCHS_OF_PAPER,
            tol=0.0, n_iter_no_change=EPOCHS_OF_PAPER + 1, random_state=0,
        )  # fmt: skip
        accuracy.append(head.fit(train.astype(np.float32), levels).score(test.astype(np.float32), true))
    return accuracy


def linear_of_sklearn(parts: list[Split]) -> list[float]:
    return [LogisticRegression(max_iter=1000).fit(a, c).score(b, d) for a, b, c, d in parts]


def areas_of_sklearn(parts: list[Split]) -> list[float]:
    areas = []
    for train, test, levels, true in parts:
        head = OneVsRestClassifier(LogisticRegression()).fit(train, levels)
        areas.append(roc_auc_score(np.eye(levels.max() + 1)[true], head.decision_function(test)))
    return areas


def svms_of_sklearn(parts: list[Split]) -> list[list[float]]:
    return [
        [
            LinearSVC(C=0.01, class_weight="balanced", dual=False).fit(a[:, [i]], c).score(b[:, [i]], d)
            for i in range(a.shape[1])
        ]
        for a, b, c, d in parts
    ]


def speed() -> None:
    warnings.simplefilter("ignore")
    data = Representation.example()
    codes, factors = data.codes, data.factors.astype(int)
    for metric in (nk, linear_accuracy, explicitness, sap, snc):
        metric(codes[:200], factors[:200])
    sap(codes[:200], factors[:200], variant="disentanglement_lib")
    parts = splits(codes, factors)

    def three() -> None:
        with sharing():
            for metric in (nk, mlp_accuracy, linear_accuracy):
                metric(codes, factors)

    took, _ = seconds(three, 3)
    print(f"nk, mlp_accuracy and linear_accuracy, sharing their perceptrons: {took:.2f} s")
    print(f"snc: {seconds(lambda: snc(codes, factors), 3)[0]:.3f} s\n")
    rows = [
        ("mlp_accuracy", lambda: mlp_accuracy(codes, factors).mean_accuracy, perceptrons_of_sklearn, 1),
        (
            "the same, as in paper",
            lambda: mlp_accuracy(codes, factors, training="paper").mean_accuracy,
            perceptrons_of_sklearn,
            1,
        ),
        (
            "linear_accuracy",
            lambda: linear_accuracy(codes, factors, training="optimum").mean_accuracy,
            linear_of_sklearn,
            3,
        ),
        ("explicitness (AUC)", lambda: explicitness(codes, factors).auc, areas_of_sklearn, 3),
        (
            "sap, by its SVM",
            lambda: sap(codes, factors, variant="disentanglement_lib").predictability.mean(),
            svms_of_sklearn,
            1,
        ),
    ]
    print(f"{'':<22}{'ours':>9}{'sklearn':>9}{'ratio':>8}{'our value':>13}{'theirs':>9}")
    for name, work, peer, runs in rows:
        own, value = seconds(work, 3)
        other, theirs = seconds(lambda peer=peer: np.mean(peer(parts)), runs)
        print(f"{name:<22}{own:8.2f}s{other:8.2f}s{other / own:7.1f}x{value:13.4f}{theirs:9.4f}")


def against_torch() -> None:
    data = Representation.example()
    codes, factors = data.codes, data.factors.astype(int)
    for seed in range(3):
        rows = train_test_split(codes, factors, None, seed)
        own = accuracies(perceptrons(rows, seed, "paper").predicted, rows)
        peer = np.array([torch_accuracy(*part, seed) for part in splits(codes, factors, seed)])
        print(f"seed {seed}   ours  {own.round(3)}  mean {own.mean():.4f}")
        print(f"         torch {peer.round(3)}  mean {peer.mean():.4f}")


def torch_accuracy(train: FloatArray, test: FloatArray, levels: IntArray, true: IntArray, seed: int) -> float:
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    head = nn.Sequential(nn.Linear(train.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, int(levels.max()) + 1))
    optimizer = torch.optim.Adam(head.parameters(), lr=RATE_OF_PAPER)
    inputs, targets = torch.tensor(train, dtype=torch.float32), torch.tensor(levels)
    for _ in range(EPOCHS_OF_PAPER):
        for batch in torch.randperm(len(inputs)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(inputs[batch]), targets[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        found = head(torch.tensor(test, dtype=torch.float32)).argmax(dim=1)
    return float(np.mean(found.numpy() == true))


def ranks(n_models: int = 60, n_rows: int = 6000) -> None:
    """Each metric of all models by both trainings, and by two seeds of one: rank correlations and largest changes."""
    rng = np.random.default_rng(0)
    models = [synthetic(rng, n_rows) for _ in range(n_models)]
    for metric in (nk, mlp_accuracy):
        annealed, paper, again = (
            np.array([metric(codes, factors, seed=seed, training=training).score for codes, factors in models])
            for training, seed in (("annealed", 0), ("paper", 0), ("paper", 1))
        )
        for name, first, second in (("annealed and paper", annealed, paper), ("two seeds of paper", paper, again)):
            change = np.abs(first - second)
            print(
                f"{metric.__name__:<14}{name:<20} rank correlation {spearmanr(first, second).statistic:.3f}, "
                f"scores differ by {change.mean():.3f} on average and {change.max():.3f} at most"
            )


def synthetic(rng: np.random.Generator, n_rows: int) -> tuple[FloatArray, IntArray]:
    """Three factors of 4, 8 and 16 levels in ten codes, more or less noisy and mixed; some models lack some of them."""
    factors = np.stack([rng.integers(0, size, n_rows) for size in (4, 8, 16)], axis=1)
    seen = (factors - factors.mean(axis=0)) / factors.std(axis=0) * (rng.random(3) > 0.2)
    codes = np.concatenate([seen, rng.standard_normal((n_rows, 7)) * (rng.random(7) > 0.3)], axis=1)
    mixed = np.linalg.qr(np.eye(10) + rng.choice([0.0, 0.1, 0.3, 1.0]) * rng.standard_normal((10, 10)))[0]
    return codes @ mixed + rng.uniform(0.05, 0.8) * rng.standard_normal((n_rows, 10)), factors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="store_true", help="compare what is learnt with PyTorch")
    parser.add_argument("--ranks", action="store_true", help="compare the two trainings over many models")
    given = parser.parse_args()
    against_torch() if given.torch else ranks() if given.ranks else speed()
