"""What compositional accuracy says of codes whose answer is known: exact factors with noise, and a look-up table.

    python evidence/benchmarks/compositional.py            the table, some minutes of one core

Codes of all images of the rendered rooms (shape and object hue held out, as in Mahon et al. 2023, table 3) without any
training: each factor in a code of its own with noise of 0, .02, .1 and .3 of the factor's range; the same turned at
random, so that no code holds one factor; a look-up table, in which each pair of levels has random codes of its own;
and nothing but noise. Whoever is tested should be told apart from the last two.
"""

import argparse
from collections.abc import Callable

import numpy as np
from scipy.stats import ortho_group

from unbraid.base.types import FloatArray
from unbraid.datasets import leave_out, load
from unbraid.metrics import snc
from unbraid.studies.holdout.evaluation import HEADS, N_ROWS, guessing, head_accuracies, summary
from unbraid.studies.holdout.splits import compositional_holdouts

FACTORS = ("shape", "object_hue")
LEVELS_OF_NOISE = (0.0, 0.02, 0.1, 0.3)


def exact(noise: float) -> Callable[[FloatArray, np.random.Generator], FloatArray]:
    def codes(values: FloatArray, rng: np.random.Generator) -> FloatArray:
        return values + noise * rng.standard_normal(values.shape)

    return codes


def turned(values: FloatArray, _: np.random.Generator) -> FloatArray:
    """All factors in all codes, without noise."""
    return (values - 0.5) @ ortho_group.rvs(values.shape[1], random_state=np.random.default_rng(0))


def looked_up(values: FloatArray, _: np.random.Generator) -> FloatArray:
    """Ten random codes for each pair of levels of the two factors."""
    pair = np.unique(values[:, -2:], axis=0, return_inverse=True)[1].reshape(-1)
    table = np.random.default_rng(0).standard_normal((pair.max() + 1, 10))
    return table[pair]


def nothing(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal((len(values), 10))


CONTROLS = {
    **{f"a code for each factor, noise {noise:g}": exact(noise) for noise in LEVELS_OF_NOISE},
    "the same, noise 0, turned": turned,
    "look-up table of pairs": looked_up,
    "noise alone": nothing,
}


def measured(
    codes_of: Callable[[FloatArray, np.random.Generator], FloatArray], n_combinations: int
) -> dict[str, float]:
    """Held-out and ordinary accuracy of both factors by each head, above chance, and SNC of the two."""
    dataset = load("shapes3d_rendered")
    space = dataset.space
    columns = [space.column(name) for name in FACTORS]
    order = [place for place in range(len(space.names)) if place not in columns] + columns
    levels = space.factors(np.arange(len(space)))
    values = levels[:, order] / np.maximum(levels[:, order].max(axis=0), 1)
    rng = np.random.default_rng(1)
    codes = codes_of(values, rng)
    found: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for holdout in compositional_holdouts(space, FACTORS, n_combinations=n_combinations):
        seen = leave_out(dataset, holdout.without).positions
        train, test = _some(seen, rng), _some(np.setdiff1d(np.arange(len(levels)), seen), rng)
        kinds = [space.kinds[column] for column in columns]
        rows = codes[train], levels[train][:, columns], codes[test], levels[test][:, columns]
        chance = guessing(levels[:, columns], levels[test][:, columns])
        for head, accuracy in head_accuracies(*rows, kinds=kinds).items():
            found.setdefault(f"{head}, {holdout.split}", []).append((accuracy, chance))
    scores = {
        name: float(summary([accuracy for accuracy, _ in each], [chance for _, chance in each]).score[2])
        for name, each in found.items()
    }
    rows = _some(np.arange(len(levels)), rng)
    told = snc(codes[rows], levels[rows][:, columns], kinds=kinds)
    return {**scores, "SNC": float(told.per_factor.prod())}


def _some(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= N_ROWS else np.sort(rng.choice(rows, N_ROWS, replace=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--combinations", type=int, default=5)
    n_combinations = parser.parse_args().combinations
    names = [f"{head}, {split}" for split in ("combination", "random") for head in HEADS]
    print("| codes | " + " | ".join([*names, "SNC"]) + " |")
    print("| --- |" + " ---: |" * (len(names) + 1))
    for name, codes_of in CONTROLS.items():
        found = measured(codes_of, n_combinations)
        print(f"| {name} | " + " | ".join(f"{found[each]:.2f}" for each in (*names, "SNC")) + " |", flush=True)


if __name__ == "__main__":
    main()
