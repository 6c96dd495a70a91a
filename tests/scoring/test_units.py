"""Codes of several numbers per unit, scored by the first principal component of each."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

import unbraid

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 4, (600, 3))
WAYS = RNG.standard_normal((3, 5))
TOKENS = FACTORS[:, :, None] * WAYS + 0.2 * RNG.standard_normal((600, 3, 5))


def test_each_unit_is_its_first_component_as_scikit_learn_has_it() -> None:
    card = unbraid.score(TOKENS, FACTORS, metrics=["mig", "mcc"], units="pca")
    codes = card.representation.codes
    assert codes.shape == (600, 3)
    for unit in range(3):
        of_peer = PCA(1).fit(TOKENS[:, unit])
        told = of_peer.transform(TOKENS[:, unit])[:, 0]
        np.testing.assert_allclose(np.abs(codes[:, unit]), np.abs(told), atol=1e-9)
        loadings = of_peer.components_[0]
        largest = loadings[np.abs(loadings).argmax()]
        np.testing.assert_allclose(codes[:, unit], told * np.sign(largest), atol=1e-9)
    assert card.representation.code_names == ("unit 0", "unit 1", "unit 2")
    assert card["mig"].score == unbraid.score(codes, FACTORS, metrics="mig")["mig"].score
    assert card["mig"].score > 0.8


def test_rows_with_weights_are_as_good_as_repeated_ones() -> None:
    counts = np.arange(600) % 4
    weighted = unbraid.score(TOKENS, FACTORS, metrics=["mig", "modularity"], units="pca", weights=counts)
    again = np.repeat(np.arange(600), counts)
    repeated = unbraid.score(TOKENS[again], FACTORS[again], metrics=["mig", "modularity"], units="pca")
    for metric, each in repeated.scored.items():
        assert weighted[metric].score == pytest.approx(each.headline, abs=1e-9)
    of_peer = PCA(1).fit_transform(TOKENS[again, 0])[:, 0]
    own = weighted.representation.codes[:, 0][np.searchsorted(np.flatnonzero(counts), again)]
    np.testing.assert_allclose(np.abs(own), np.abs(of_peer), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_squares_of_codes_need_not_be_numbers(scale: float) -> None:
    plain, scaled = (
        unbraid.score(codes, FACTORS, metrics="mig", units="pca").representation.codes
        for codes in (TOKENS, TOKENS * scale)
    )
    np.testing.assert_allclose(scaled / scale, plain, rtol=1e-9, atol=1e-9)


def test_columns_in_blocks_are_units_under_their_names() -> None:
    flat = TOKENS.reshape(600, 15)
    blocks = {"shape": range(5), "size": range(5, 10), "hue": range(10, 15)}
    card = unbraid.score(flat, FACTORS, metrics="mig", units="pca", code_blocks={k: list(v) for k, v in blocks.items()})
    assert card.representation.code_names == ("shape", "size", "hue")
    assert card["mig"].score == unbraid.score(TOKENS, FACTORS, metrics="mig", units="pca")["mig"].score


def test_what_the_component_leaves_out_is_said() -> None:
    round_cloud = TOKENS.copy()
    round_cloud[:, 1] = RNG.standard_normal((600, 5))
    notes = unbraid.score(round_cloud, FACTORS, metrics="mig", units="pca").representation.notes
    share = PCA(1).fit(round_cloud[:, 1]).explained_variance_ratio_[0]
    assert any(f"{share:.0%} of unit 1: what the rest says is not scored" in note for note in notes)
    assert "codes are the first principal components of 3 units" in notes
    dead = TOKENS.copy()
    dead[:, 2] = 1.0
    dead[::2, 2] *= 1 + 1e-15  # which is rounding
    assert np.ptp(unbraid.score(dead, FACTORS, metrics="mig", units="pca").representation.codes[:, 2]) == 0.0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="units must be 'pca'"):
        unbraid.score(TOKENS, FACTORS, units="mean")
    for broken in (np.full_like(TOKENS, np.nan), TOKENS[:0]):
        held = unbraid.Representation(
            broken.reshape(len(broken), 15), FACTORS[: len(broken)], code_blocks=[[0, 1], [2]]
        )
        with pytest.raises(ValueError, match="codes of units must be finite, in two rows or more"):
            unbraid.score(held, units="pca")
    with pytest.raises(ValueError, match="units are the second axis of codes"):
        unbraid.score(TOKENS[:, 0], FACTORS, units="pca")
    with pytest.raises(ValueError, match="codes of three axes are blocks already"):
        unbraid.score(TOKENS, FACTORS, units="pca", code_blocks=[[0], [1]])
    with pytest.raises(ValueError, match=r"must be \(n_samples, n_units, size\); got shape \(600, 0, 5\)"):
        unbraid.score(TOKENS[:, :0], FACTORS, units="pca")
