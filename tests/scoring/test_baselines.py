"""Baselines without training, scored on the same images."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA

import unbraid
from unbraid import Representation, ScoreCard
from unbraid.data import FactorSpace, whole_objects
from unbraid.data.image_dataset import ArrayDataset
from unbraid.metrics import METRICS, d_lsbd, mig, mig_exact, sap
from unbraid.scoring.baselines import Baseline, no_better
from unbraid.scoring.card_tables import score_table
from unbraid.scoring.pixels import MOST_ROWS, principal_components, random_projection

Images = NDArray[np.uint8]


def noisy_dots(n_levels: int = 6, size: int = 5) -> ArrayDataset:
    """A dot at one of the places of a square, on noise that has no factor."""
    rng = np.random.default_rng(3)
    space = FactorSpace(("y", "x", "draw"), (size, size, n_levels), ("ordinal", "ordinal", "ordinal"))
    images = rng.integers(0, 60, (len(space), size, size, 2), dtype=np.uint8)
    y, x, _ = space.grid().T
    images[np.arange(len(space)), y, x] += 150
    return ArrayDataset(images, space)


DOTS = noisy_dots()


def first_dots(n_images: int) -> ArrayDataset:
    return ArrayDataset(DOTS.array[:n_images], FactorSpace(("image",), (n_images,), ("ordinal",)))


def means(images: Images) -> NDArray[np.float64]:
    """Three codes: the mean of each of three rows of an image."""
    return images[:, :3].mean(axis=(2, 3))


def test_a_random_projection_is_a_plain_loop_over_pixels_and_codes() -> None:
    weights = np.random.default_rng([7, 1]).standard_normal((50, 3)) / np.sqrt(50)
    found = random_projection(DOTS, 3, 7)(DOTS.array[:4])
    for row, image in enumerate(DOTS.array[:4]):
        values = [float(pixel) / 255 for pixel in image.ravel()]
        for code in range(3):
            assert found[row, code] == pytest.approx(sum(v * w for v, w in zip(values, weights[:, code], strict=True)))
    assert not np.allclose(found, random_projection(DOTS, 3, 8)(DOTS.array[:4]))


@pytest.mark.parametrize("n_images", [20, 150])
def test_principal_components_are_those_of_scikit_learn_with_fewer_or_more_images_than_pixels(n_images: int) -> None:
    found = principal_components(first_dots(n_images), 6, 7, 0)(DOTS.array[:n_images])
    theirs = PCA(6, svd_solver="full").fit_transform(DOTS.array[:n_images].reshape(n_images, -1) / 255)
    assert np.abs(found) == pytest.approx(np.abs(theirs), abs=1e-9)
    assert np.corrcoef(found[:, 0], theirs[:, 0])[0, 1] ** 2 == pytest.approx(1)
    wide = principal_components(first_dots(5), 6, 7, 0)(DOTS.array[:5])
    assert (np.abs(wide).max(axis=0) > 1e-9).tolist() == [True] * 4 + [False] * 2
    assert not wide[:, 4:].any()


@pytest.mark.parametrize("n_images", [40, 150])
def test_components_of_large_images_are_those_of_scikit_learn_without_a_matrix_of_all_pixels(
    n_images: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.scoring.pixels.DENSE", 8)
    dots = noisy_dots(6, 16)
    images = dots.array[:: 1536 // n_images][:n_images]
    dataset = ArrayDataset(images, FactorSpace(("image",), (n_images,), ("ordinal",)))
    found = principal_components(dataset, 6, 7, 0)(images)
    theirs = PCA(6, svd_solver="full").fit_transform(images.reshape(n_images, -1) / 255)
    assert np.abs(found) == pytest.approx(np.abs(theirs), abs=1e-7)
    alike = ArrayDataset(np.zeros_like(images), FactorSpace(("image",), (n_images,), ("ordinal",)))
    assert not principal_components(alike, 6, 7, 0)(images).any()
    two = images[np.arange(n_images) % 2]
    codes = principal_components(ArrayDataset(two, alike.space), 6, 7, 0)(two)
    assert (np.ptp(codes, axis=0) > 1e-9).tolist() == [True] + [False] * 5, "they vary in one direction"


def test_components_of_many_images_are_those_of_a_seeded_draw_that_fits_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MOST_ROWS == 20_000
    for rows, numbers in ((40, 1 << 24), (1000, 40 * 50)):
        monkeypatch.setattr("unbraid.scoring.pixels.MOST_ROWS", rows)
        monkeypatch.setattr("unbraid.scoring.pixels.MOST_NUMBERS", numbers)
        index = np.sort(np.random.default_rng(5).choice(150, 40, replace=False))
        theirs = PCA(3, svd_solver="full").fit(DOTS.array[index].reshape(40, -1) / 255)
        found = principal_components(DOTS, 3, 16, 5)(DOTS.array)
        assert np.abs(found) == pytest.approx(np.abs(theirs.transform(DOTS.array.reshape(150, -1) / 255)), abs=1e-9)


def test_every_score_stands_beside_those_of_the_same_images_by_the_same_metric(tmp_path: Path) -> None:
    seen = []

    def untrained(images: Images) -> tuple[NDArray[Any], NDArray[Any]]:
        seen.append(len(images))
        return images[:, 0, :3, 0].astype(float), np.full((len(images), 3), -3.0)

    given: dict[str, Any] = {"n_samples": 100, "seed": 4, "metrics": ["mig", "sap", "mig_exact"], "batch_size": 64}

    def sharp(images: Images) -> tuple[NDArray[Any], NDArray[Any]]:
        return means(images), np.full((len(images), 3), -9.0)

    card = unbraid.score_encoder(sharp, DOTS, baselines=True, untrained=untrained, **given)
    assert seen == [64, 36]
    rows = np.sort(np.random.default_rng(4).choice(150, 100, replace=False))
    images, factors = DOTS.array[rows], DOTS.space.factors(rows)
    codes = {
        "random projection": random_projection(DOTS, 3, 4)(images),
        "PCA": principal_components(DOTS, 3, 64, 4)(images),
        "untrained encoder": images[:, 0, :3, 0].astype(float),
    }
    for name, metric in (("mig", mig), ("sap", sap)):
        expected = {each: metric(own, factors).score for each, own in codes.items()}
        assert card.scored[name].baselines == pytest.approx(expected)
        assert card[name].score == metric(means(images), factors).score
    first = codes["untrained encoder"]
    own = mig_exact(first, factors, log_variances=np.full(first.shape, -3.0), seed=4).score
    assert card.scored["mig_exact"].baselines == pytest.approx({"untrained encoder": own}), "others have no posterior"
    assert not any("untrained" in note for note in card.notes)
    frame = card.to_frame().set_index(["metric", "headline"])
    assert np.asarray(frame.loc[("sap", True), "PCA"]).item() == card.scored["sap"].baselines["PCA"]
    assert np.isnan(frame.loc[("mig", False), "PCA"]).all()
    card.save(tmp_path / "scores.json")
    read = ScoreCard.load(tmp_path / "scores.json")
    assert {name: read.scored[name].baselines for name in read} == {name: card.scored[name].baselines for name in card}
    assert read.scored["mig"].notes == card.scored["mig"].notes
    wrong = json.loads((tmp_path / "scores.json").read_text())
    wrong["metrics"]["mig"]["baselines"]["PCA"] = "high"
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    with pytest.raises(ValueError, match=r"wrong.json: .*metrics.mig.baselines.PCA: Input should be a valid number"):
        ScoreCard.load(tmp_path / "wrong.json")
    alone = unbraid.score_encoder(means, DOTS, baselines=True, **given)
    assert list(alone.scored["mig"].baselines) == ["random projection", "PCA"]
    with pytest.raises(ValueError, match="untrained is a baseline: give baselines=True, too"):
        unbraid.score_encoder(means, DOTS, untrained=untrained)


def test_a_score_no_better_than_its_best_baseline_is_marked_in_every_view() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 300) for size in (3, 4)], axis=1)
    good, bad = factors + 0.2 * rng.standard_normal((300, 2)), rng.standard_normal((300, 2))
    middling = {"PCA": factors + 0.6 * rng.standard_normal((300, 2))}
    for codes, marked in ((good, False), (bad, True)):
        card = unbraid.score(codes, factors, metrics=["mig", "irs", "d_lsbd"], baselines=middling)
        score, of_pca = card["mig"].score, mig(middling["PCA"], factors).score
        assert card.scored["mig"].baselines == {"PCA": of_pca}
        assert (score <= of_pca) == marked
        said = f"{'no better than its best baseline' if marked else 'baselines'}: PCA {of_pca:.3f}"
        assert said in card.scored["mig"].notes
        assert (f"{of_pca:.3f} !" in str(card)) == marked
        (_, row), *_ = score_table({"a": card}).texts[1:]
        assert row == f"{score:.3f}{'†' if marked else ''}"
    lower = next(row for row in METRICS.values() if not row.higher_is_better)
    assert no_better(lower.higher_is_better, 0.3, {"a": 0.5, "b": 0.3})
    assert not no_better(lower.higher_is_better, 0.2, {"a": 0.5, "b": 0.3})
    assert not no_better(lower.higher_is_better, 0.2, {})
    assert no_better(True, 0.1 + 0.2, {"PCA": 0.3}), "the same codes, turned, but for rounding"
    assert not no_better(True, 0.3001, {"PCA": 0.3})


def test_baselines_that_are_not_of_the_rows_are_refused_and_weights_and_gaps_are_theirs_too() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 60) for size in (3, 4)], axis=1)
    codes, other = rng.standard_normal((60, 2)), rng.standard_normal((60, 3))
    held = Representation(codes, factors, names=("a", "b"))
    with pytest.raises(ValueError, match=r"baselines\['PCA'\] must have as many rows as codes \(60\); got 59"):
        unbraid.score(codes, factors, metrics="mig", baselines={"PCA": other[:-1]})
    moved = Representation(other, factors[::-1], names=("a", "b"))
    with pytest.raises(ValueError, match=r"baselines\['PCA'\] has other rows than codes: the factors differ"):
        unbraid.score(held, metrics="mig", baselines={"PCA": Baseline(moved)})
    with pytest.raises(ValueError, match=r"baselines\['PCA'\] must be finite; row 0, column 0 is nan"):
        unbraid.score(held, metrics="mig", baselines={"PCA": np.full((60, 2), np.nan)})
    for wrong, named in ((True, "bool"), ("PCA", "str"), ([other], "list")):
        with pytest.raises(ValueError, match=rf"baselines must be codes of the same rows by name, .*; got {named}"):
            unbraid.score(held, metrics="mig", baselines=wrong)  # pyright: ignore[reportArgumentType]
    counts = np.arange(60) % 3
    card = unbraid.score(held, metrics="mig", weights=counts, baselines={"PCA": other})
    assert card.scored["mig"].baselines["PCA"] == pytest.approx(mig(other, factors, weights=counts).score)
    labels = {"a": [None, *factors[1:, 0].tolist()], "b": factors[:, 1].tolist()}
    fewer = unbraid.score(codes, labels, metrics="mig", baselines={"PCA": other})
    assert fewer.scored["mig"].baselines["PCA"] == mig(other[1:], factors[1:]).score
    gaps = other.copy()
    gaps[0] = np.nan  # in the row that lacks a label
    fewer = unbraid.score(codes, labels, metrics="mig", baselines={"PCA": gaps})
    assert fewer.scored["mig"].baselines["PCA"] == mig(other[1:], factors[1:]).score
    gaps[7, 2] = np.inf
    with pytest.raises(ValueError, match=r"baselines\['PCA'\] must be finite; row 7, column 2 is inf"):
        unbraid.score(codes, labels, metrics="mig", baselines={"PCA": gaps})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[unbraid.Run]:
    """Of a dataset that has a name, so that its folder finds the images again."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBRAID_DATA", str(folder))
        source = {"name": "square", "positions": 8}
        (made,) = unbraid.train("beta_vae", source, steps=2, batch_size=4, out=folder, processes=0, latents=4)
        yield made


def test_the_untrained_encoder_is_the_network_that_training_begins_with(run: unbraid.Run) -> None:
    torch = pytest.importorskip("torch")
    from unbraid.families.building import Member
    from unbraid.families.family import completed
    from unbraid.families.family_table import FAMILIES
    from unbraid.training.population import make_context, make_population

    family, dataset = FAMILIES["beta_vae"], run.dataset()
    members = [Member(run.config["seed"], completed(family, run.config["hyperparameters"]))]
    context = make_context(family, members, dataset, batch_size=4, steps=2)
    start = make_population(family, members, dataset, context, device=torch.device("cpu")).state(0)
    weights = run.untrained().modules.state_dict()
    assert weights.keys() == {name.removeprefix("model/") for name in start if name.startswith("model/")}
    assert all(torch.equal(value, start[f"model/{name}"]) for name, value in weights.items())
    assert not all(torch.equal(value, run.modules.state_dict()[name]) for name, value in weights.items())
    held = run.baselines()["untrained encoder"].representation
    codes, log_variances = run.untrained().posterior(dataset.images(np.arange(64)))
    assert (held.codes == codes).all()
    assert held.log_variances is not None
    assert (held.log_variances == log_variances).all()
    assert not np.allclose(codes, run.codes().codes)


def test_a_family_that_is_fitted_has_no_untrained_encoder_and_pca_scores_as_the_family_does(tmp_path: Path) -> None:
    (made,) = unbraid.train("pca", DOTS, out=tmp_path, processes=0, latents=3)
    baselines = made.baselines(DOTS)
    assert list(baselines) == ["random projection", "PCA"]
    assert np.abs(baselines["PCA"].representation.codes) == pytest.approx(np.abs(made.codes().codes), abs=1e-5)
    card = unbraid.score(made.codes(), metrics="sap", baselines=baselines)
    assert card.scored["sap"].baselines["PCA"] == pytest.approx(card["sap"].score, abs=1e-5)


def test_whole_objects_of_baselines_are_encoded_where_those_of_the_model_are() -> None:
    """Images drawn at random have gaps, which d_lsbd refuses: it takes every turn of as many objects as they hold."""
    space = FactorSpace(("object", "turn"), (10, 8), ("categorical", "cyclic"))
    images = np.random.default_rng(1).integers(0, 256, (80, 3, 3, 1), dtype=np.uint8)
    dataset = ArrayDataset(images, space)
    given: dict[str, Any] = {"n_samples": 40, "seed": 2, "metrics": ["mig", "d_lsbd"]}

    def encode(images: Images) -> NDArray[Any]:
        return images.reshape(-1, 9)[:, :3].astype(float)

    card = unbraid.score_encoder(encode, dataset, baselines=True, **given)
    index = whole_objects(space, 40, seed=2)
    codes = random_projection(dataset, 3, 2)(images[index])
    own = d_lsbd(codes, space.factors(index), kinds=space.kinds, sizes=space.sizes, seed=2)
    assert card.scored["d_lsbd"].objects is not None
    assert card.scored["d_lsbd"].baselines["random projection"] == pytest.approx(own.score)
