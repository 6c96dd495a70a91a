"""Put metrics of other packages through `unbraid stress`, and write what each makes of it to audit.json.

    pip install disent==0.8.0 torchmetrics==1.9.0 scib-metrics==0.5.10 cebra==0.6.1 sae-lens==6.54.12
    python evidence/benchmarks/audit.py                  those that are installed, some minutes
    python evidence/benchmarks/audit.py cebra disent     these anew, the others as they are

disent 0.9.3 needs Python 3.12; the metrics that are judged here are the same in it.

Each function is called as its documentation says, by an adapter from codes and factors to a number. What the adapters
add: codes are cut into 20 bins of equal width where labels are read, and so are continuous factors; a function that
reads one code and one factor is given all pairs, and the mean over factors of the best code is judged; one that reads
all codes and one factor is given each factor, and the mean is judged. Where a function has no meaning, such as one of
classes on continuous factors, the case is not judged.
"""

import argparse
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from unbraid import stress
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import Claim, NotDefined
from unbraid.metrics.own_metric import row_of
from unbraid.scoring.stress import Stressed

FILE = Path(__file__).parent / "audit.json"
BINS = 20  # as disent's own
NEAR = 960  # rows between all of which scib-metrics takes distances: the grid twice
BATCH = 256  # rows that disent asks for at a time


@dataclass(frozen=True)
class Foreign:
    """A function of another package, by an adapter."""

    name: str
    claims: tuple[Claim, ...]
    adapter: Callable[..., Any]
    value: str | None = None  # the entry that is judged, where the function returns a mapping


def classes(factors: FloatArray, kinds: Sequence[str]) -> IntArray:
    """Levels as whole numbers from 0, and continuous factors in bins of equal width."""
    columns = [bins(column) if kinds[k] == "continuous" else column for k, column in enumerate(factors.T)]
    return np.stack([np.unique(column, return_inverse=True)[1] for column in columns], axis=1)


def bins(column: FloatArray) -> IntArray:
    """Of equal width from the least to the largest value."""
    return np.digitize(column, np.histogram_bin_edges(column, BINS)[1:-1])


def levels_alone(factors: FloatArray, kinds: Sequence[str]) -> IntArray:
    """Raises NotDefined for factors that are no classes."""
    if "continuous" in kinds or (factors != np.round(factors)).any():
        raise NotDefined("reads classes")
    return classes(factors, kinds)


# disent


def drawn_rows(codes: FloatArray, factors: FloatArray | IntArray) -> SimpleNamespace:
    """As much of a DisentDataset as metrics ask for, of rows whose images are their codes."""
    rng = np.random.default_rng(0)
    np.random.seed(0)  # which disent draws from

    def with_factors(n: int, mode: str) -> tuple[FloatArray, FloatArray | IntArray]:  # noqa: ARG001 (by name)
        rows = rng.integers(0, len(codes), n)
        return codes[rows], factors[rows]

    return SimpleNamespace(
        dataset_sample_batch_with_factors=with_factors, dataset_sample_batch=lambda n, mode: with_factors(n, mode)[0]
    )


def grid_rows(codes: FloatArray, factors: IntArray) -> SimpleNamespace:
    """The same, with rows of given factors: one at random of those that have them."""
    rng = np.random.default_rng(1)
    sizes = tuple(factors.max(axis=0) + 1)
    cell = np.ravel_multi_index(tuple(factors.T), sizes)
    counts = np.bincount(cell, minlength=np.prod(sizes))
    if not counts.all():
        raise NotDefined("needs images of every combination of factors")
    order, starts = np.argsort(cell, kind="stable"), np.cumsum(counts) - counts

    def of_factors(asked: IntArray, mode: str) -> FloatArray:  # noqa: ARG001 (by name)
        wanted = np.ravel_multi_index(tuple(asked.T), sizes)
        return codes[order[starts[wanted] + rng.integers(0, counts[wanted])]]

    space = SimpleNamespace(num_factors=len(sizes), sample_factors=lambda n: rng.integers(0, sizes, (n, len(sizes))))
    return SimpleNamespace(**vars(drawn_rows(codes, factors)), gt_data=space, dataset_batch_from_factors=of_factors)


def of_disent() -> Iterator[Foreign]:
    """MIG with its default sizes; the others by `compute_fast`, since gradient boosting takes minutes otherwise."""
    from disent.metrics import metric_dci, metric_factor_vae, metric_mig, metric_sap

    def given(codes: FloatArray) -> FloatArray:
        return codes

    def mig(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> Any:
        return metric_mig(drawn_rows(codes, classes(factors, kinds)), given, batch_size=BATCH)

    def sap(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> Any:
        continuous = set(kinds) == {"continuous"}
        rows = drawn_rows(codes, factors if continuous else classes(factors, kinds))
        return metric_sap.compute_fast(rows, given, batch_size=BATCH, continuous_factors=continuous)

    def dci(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> Any:
        return metric_dci.compute_fast(drawn_rows(codes, levels_alone(factors, kinds)), given, batch_size=BATCH)

    def factor_vae(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> Any:
        return metric_factor_vae.compute_fast(grid_rows(codes, levels_alone(factors, kinds)), given)

    yield Foreign("metric_mig", ("compactness",), mig)
    yield Foreign("metric_sap", ("compactness",), sap)
    yield Foreign("metric_dci", ("modularity",), dci, "dci.disentanglement")
    yield Foreign("metric_dci", ("compactness",), dci, "dci.completeness")
    yield Foreign("metric_dci", ("explicitness",), dci, "dci.informativeness_test")
    yield Foreign("metric_factor_vae", ("modularity",), factor_vae, "factor_vae.eval_accuracy")


# torchmetrics


def of_torchmetrics() -> Iterator[Foreign]:
    """All that compare two labellings, but adjusted_mutual_info_score: seconds for each pair of a code and a factor."""
    import torch
    from torchmetrics.functional import clustering, nominal

    def best_code(score: Callable[..., Any]) -> Callable[..., float]:
        def adapter(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> float:
            read = torch.tensor(classes(factors, kinds).T)
            binned = torch.tensor(classes(codes, ["continuous"] * codes.shape[1]).T)
            return float(np.mean([max(float(score(code, factor)) for code in binned) for factor in read]))

        return adapter

    for name in (
        "mutual_info_score", "normalized_mutual_info_score", "homogeneity_score", "completeness_score",
        "v_measure_score", "rand_score", "adjusted_rand_score", "fowlkes_mallows_index",
    ):  # fmt: skip
        yield Foreign(name, ("alignment",), best_code(getattr(clustering, name)))
    for name in ("cramers_v", "theils_u", "tschuprows_t", "pearsons_contingency_coefficient"):
        yield Foreign(name, ("alignment",), best_code(getattr(nominal, name)))


# scib-metrics


def of_scib() -> Iterator[Foreign]:
    """Those of an embedding and its labels."""
    import scib_metrics
    from scib_metrics.nearest_neighbors import pynndescent

    def each_label(score: Callable[..., Any]) -> Callable[..., Any]:
        def adapter(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> Any:
            embedding = np.ascontiguousarray(codes[:NEAR], dtype=np.float32)
            found = [score(embedding, label) for label in levels_alone(factors, kinds)[:NEAR].T]
            if not isinstance(found[0], dict):
                return float(np.mean(found))
            return {name: float(np.mean([each[name] for each in found])) for name in found[0]}

        return adapter

    def explained(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> float:
        measure = scib_metrics.utils.principal_component_regression
        shares = [
            measure(codes.astype(np.float32), column, categorical=kind == "categorical")
            for column, kind in zip(factors.T, kinds, strict=True)
        ]
        return float(np.mean(shares))

    clustered = each_label(scib_metrics.nmi_ari_cluster_labels_kmeans)
    yield Foreign("silhouette_label", (), each_label(scib_metrics.silhouette_label))
    yield Foreign("nmi_ari_cluster_labels_kmeans", (), clustered, "nmi")
    yield Foreign("nmi_ari_cluster_labels_kmeans", (), clustered, "ari")
    yield Foreign("clisi_knn", (), each_label(lambda x, label: scib_metrics.clisi_knn(pynndescent(x, 90), label)))
    yield Foreign("utils.principal_component_regression", (), explained)


# cebra


def of_cebra() -> Iterator[Foreign]:
    """The consistency of codes with factors, as of two runs: how well a line through the codes tells the factors."""
    from cebra.integrations.sklearn.metrics import consistency_score

    def consistency(codes: FloatArray, factors: FloatArray) -> float:
        return float(consistency_score([codes, factors], between="runs")[0][0])

    yield Foreign("consistency_score", ("explicitness",), consistency)


# sae-lens


def of_sae_lens() -> Iterator[Foreign]:
    """Directions of a dictionary are compared as they are; columns of codes and factors are such, about their means."""
    import torch
    from sae_lens.synthetic.evals import mean_correlation_coefficient

    def centred(columns: FloatArray) -> Any:
        return torch.tensor((columns - columns.mean(axis=0)).T)

    def correlation(codes: FloatArray, factors: FloatArray) -> float:
        return mean_correlation_coefficient(centred(codes), centred(factors))

    yield Foreign("synthetic.evals.mean_correlation_coefficient", ("alignment",), correlation)


def dictionaries() -> dict[str, dict[str, float]]:
    """What sae-lens says of 32 directions in 32 dimensions that stand for 32 true ones, each about one row in ten."""
    import torch
    from sae_lens.synthetic.evals import (
        ExplainedVarianceCalculator,
        compute_classification_metrics,
        feature_uniqueness,
        mean_correlation_coefficient,
    )

    generator = torch.Generator().manual_seed(0)
    size, rows = 32, 5000
    truth = torch.eye(size)
    fires = torch.rand((rows, size), generator=generator) < 0.1
    acts = torch.where(fires, 1.0 + torch.rand((rows, size), generator=generator), 0.0)
    random = torch.nn.functional.normalize(torch.randn((size, size), generator=generator), dim=1)
    made = {
        "true": (truth, acts),
        "random": (random, torch.relu(acts @ random.T - 1.0)),
        "all alike": (truth[:1].repeat(size, 1), acts[:, :1].repeat(1, size)),
        "dead": (torch.zeros(size, size), torch.zeros(rows, size)),
        "one direction": (truth[:1], acts[:, :1]),
    }
    inputs = acts @ truth
    found = {}
    for name, (directions, latents) in made.items():
        told = compute_classification_metrics(latents, acts, directions, truth)
        found[name] = {
            "mean_correlation_coefficient": mean_correlation_coefficient(directions, truth),
            "feature_uniqueness": feature_uniqueness(directions, truth),
            "f1_score": told.f1_score,
            "accuracy": told.accuracy,
            "explained_variance": explained(ExplainedVarianceCalculator(), latents @ directions, inputs),
        }
    mean = inputs.mean(dim=0, keepdim=True).expand_as(inputs)
    found["mean predictor"] = {"explained_variance": explained(ExplainedVarianceCalculator(), mean, inputs)}
    return {name: {key: round(number, 4) for key, number in row.items()} for name, row in found.items()}


def explained(calculator: Any, outputs: Any, inputs: Any) -> float:
    """Of one batch."""
    calculator.add_batch(outputs, inputs)
    return calculator.compute()


PACKAGES: dict[str, Callable[[], Iterator[Foreign]]] = {
    "disent": of_disent,
    "torchmetrics": of_torchmetrics,
    "scib-metrics": of_scib,
    "cebra": of_cebra,
    "sae-lens": of_sae_lens,
}
BESIDE = ("numpy", "scikit-learn", "torch", "jax")


def judged(metrics: Sequence[Foreign], package: str) -> list[dict[str, Any]]:
    """The verdict of each; several values of one function are found in one go, and so are functions of one claim."""
    entries = []
    for name in dict.fromkeys(metric.name for metric in metrics):
        asked = [metric for metric in metrics if metric.name == name]
        row = row_of(once_each(asked[0].adapter), f"{package}:{name}")
        for metric in asked:
            for result in stress(row, claims=metric.claims, value=metric.value):
                entries.append(entry(name, result))
                print(line(package, entries[-1]), flush=True)
    return entries


def once_each(adapter: Callable[..., Any]) -> Callable[..., Any]:
    """The adapter, which keeps what it said of each case, since the values of a mapping are judged one at a time."""
    said: dict[bytes, Any] = {}
    wants_kinds = "kinds" in adapter.__code__.co_varnames[: adapter.__code__.co_argcount]

    def kept(codes: FloatArray, factors: FloatArray, kinds: Sequence[str]) -> Any:
        key = codes.tobytes() + factors.tobytes()
        if key not in said:
            said[key] = adapter(codes, factors, kinds) if wants_kinds else adapter(codes, factors)
        return said[key]

    return kept


def entry(name: str, result: Stressed) -> dict[str, Any]:
    """As audit.json has it."""
    return {
        "name": name,
        "value": result.value,
        "claims": list(result.claims),
        "passed": result.n_passed,
        "judged": result.n_passed + len(result.failed),
        "not_judged": sum(check.passed is None for check in result.checks),
        "failed": list(dict.fromkeys(check.situation for check in result.failed)),
        "why": {check.situation: check.why for check in result.failed if check.why},
        "shares": {check.situation: round(check.share, 3) for check in result.failed if check.share is not None},
    }  # fmt: skip


def line(package: str, told: dict[str, Any]) -> str:
    value = "" if told["value"] == "score" else f" {told['value']}"
    failed = ", ".join(told["failed"])
    return f"{package} {told['name']}{value}: {told['passed']} of {told['judged']} passed; fails at {failed or 'none'}"


def main() -> None:
    """Judge, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help=f"of {', '.join(PACKAGES)}; default: those that are installed")
    asked = parser.parse_args().packages
    if unknown := [name for name in asked if name not in PACKAGES]:
        parser.error(f"unknown package {unknown[0]!r}; there are {', '.join(PACKAGES)}")
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    for package in asked or PACKAGES:
        try:
            installed = version(package)
        except PackageNotFoundError:
            print(f"{package}: not installed")
            continue
        found[package] = {
            "version": installed,
            "with": {name: version(name) for name in BESIDE if has(name)},
            "metrics": judged(list(PACKAGES[package]()), package),
        }
        if package == "sae-lens":
            found[package]["dictionaries"] = dictionaries()
        ordered = {name: found[name] for name in PACKAGES if name in found}
        FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def has(name: str) -> bool:
    """Whether a package is installed."""
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
