"""A trained model that others made, and siblings of it in a known order, which the ranking finds without labels."""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import expm
from scipy.stats import ortho_group

import unbraid
from unbraid.base.types import FloatArray

N_SEEDS, N_ROWS = 3, 1500
NOISE, TURNS = (0.1, 0.3, 0.6, 1.0), (0.1, 0.3, 0.6)  # in standard deviations of a code; in radians, about


def siblings(means: FloatArray, log_variances: FloatArray) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Copies of one posterior, made worse: by noise, by turning informative latents into each other, by losing all."""
    alive = np.flatnonzero(means.var(axis=0) > 0.1)
    noiseless = np.where(np.isin(np.arange(means.shape[1]), alive), means.std(axis=0), 0)
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        normal = rng.standard_normal(means.shape)
        for share in NOISE:
            spread = share * noiseless
            yield f"noised {share}", means + spread * normal, np.log(np.exp(log_variances) + spread**2)
        skew = rng.standard_normal((len(alive), len(alive)))
        skew = (skew - skew.T) / np.sqrt(len(alive))
        for name, turn in [
            *((str(size), expm(size * skew)) for size in TURNS),
            ("any", ortho_group.rvs(5, random_state=rng)),
        ]:
            turned, spread = means.copy(), np.exp(log_variances)
            turned[:, alive], spread[:, alive] = means[:, alive] @ turn.T, spread[:, alive] @ (turn.T**2)
            yield f"rotated {name}", turned, np.log(spread)
        yield "collapsed", 1e-3 * normal, np.zeros_like(means)
        mixed = means[:, alive] @ rng.standard_normal((len(alive), means.shape[1]))
        yield "projected", mixed, np.full_like(means, np.log(0.05))
        yield "untrained", 0.05 * np.tanh(mixed / 2), np.zeros_like(means)


def test_siblings_of_a_model_made_elsewhere_come_in_their_order() -> None:
    example = unbraid.Representation.example()
    assert example.log_variances is not None
    rng, places = np.random.default_rng(0), dict[str, list[float]]()
    models = dict[str, unbraid.Representation]()
    for number, (kind, means, log_variances) in enumerate(
        siblings(example.codes[:N_ROWS].astype(float), example.log_variances[:N_ROWS].astype(float))
    ):
        order, signs = rng.permutation(means.shape[1]), rng.choice([-1, 1], means.shape[1])
        models[f"{kind}, {number}"] = unbraid.Representation(
            (means[:, order] * signs).astype(np.float32), log_variances=log_variances[:, order].astype(np.float32)
        )
    ranked = unbraid.rank(models).to_frame()
    for name, rank in zip(ranked["run"], ranked["rank"], strict=True):
        places.setdefault(name.partition(",")[0], []).append(rank)
    middle = {kind: float(np.median(found)) for kind, found in places.items()}
    for kinds in ([f"noised {share}" for share in NOISE], [f"rotated {turn}" for turn in (*TURNS, "any")]):
        assert sorted(kinds, key=middle.__getitem__) == kinds
    for worse in ("rotated any", "collapsed", "projected", "untrained"):
        assert min(places[worse]) > len(models) / 2, (worse, places)
    assert ranked["run"].iloc[0].startswith(("noised 0.1", "rotated 0.1"))
    silent = ranked[ranked["run"].str.startswith(("collapsed", "untrained"))]
    assert (silent["udr.score"] == 0).all()
