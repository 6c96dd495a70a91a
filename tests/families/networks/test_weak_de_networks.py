"""The prior of WeakDE against NumPy, and its relations by hand."""

from collections import Counter

import numpy as np
import torch

from unbraid.families.weak_de import ClassPrior, class_moves, relation_inputs, tanh_layers

SIZES, KINDS = (2, 3, 3), ("categorical", "cyclic", "ordinal")


def fitted() -> tuple[ClassPrior, np.ndarray, np.ndarray]:
    """Three classes of five, of 40, 2 and 1 images; codes of three numbers."""
    rng = np.random.default_rng(0)
    classes = np.array([1] * 40 + [3] * 2 + [4])
    codes = rng.normal(size=(43, 3)) @ rng.normal(size=(3, 3)) + 5 * classes[:, None]
    prior = ClassPrior(class_moves((5,), ("cyclic",)), 3).double()
    prior.fit(torch.from_numpy(codes), torch.from_numpy(classes), 0.1)
    return prior, codes, classes


def test_each_class_gets_its_mean_and_a_tenth_of_its_covariance() -> None:
    prior, codes, classes = fitted()
    assert prior.known.tolist() == [0, 1, 0, 1, 1]
    for chosen in (1, 3, 4):
        own = codes[classes == chosen]
        covariance = np.cov(own.T) if len(own) > 1 else np.zeros((3, 3))
        np.testing.assert_allclose(prior.means[chosen].numpy(), own.mean(0))
        root = prior.roots[chosen].numpy()
        np.testing.assert_allclose(root @ root.T, 0.1 * covariance + 1e-4 * np.eye(3), atol=1e-12)


def test_samples_have_the_mean_and_covariance_of_their_class() -> None:
    prior, codes, _ = fitted()
    noise = torch.randn(50_000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    drawn = prior.sample(torch.ones(50_000, dtype=torch.int64), noise).numpy()
    np.testing.assert_allclose(drawn.mean(0), codes[:40].mean(0), atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), 0.1 * np.cov(codes[:40].T) + 1e-4 * np.eye(3), atol=0.02)


def test_fitted_classes_are_drawn_alike_and_others_never() -> None:
    """The published code draws the first class always."""
    prior, _, _ = fitted()
    uniform = (torch.arange(300, dtype=torch.float64) + 0.5) / 300
    assert Counter(prior.choose(uniform).tolist()) == {1: 100, 3: 100, 4: 100}


def test_relations_lead_to_the_neighbours() -> None:
    moves = class_moves(SIZES, KINDS)
    assert moves.shape == (1 + 2 + 2, 18)
    for number, (a, b, c) in enumerate(np.ndindex(*SIZES)):
        expected = [
            (1 - a, b, c), (a, (b + 1) % 3, c), (a, (b - 1) % 3, c), (a, b, min(c + 1, 2)), (a, b, max(c - 1, 0)),
        ]  # fmt: skip
        assert [tuple(np.unravel_index(move, SIZES)) for move in moves[:, number]] == expected


def test_nothing_leads_to_a_class_that_was_not_fitted() -> None:
    prior, _, _ = fitted()  # 5 classes in a circle; known are 1, 3, 4
    assert prior.moved(torch.tensor([[3, 3], [4, 4], [1, 1]])).tolist() == [[4, 3], [4, 3], [1, 1]]


def test_the_learner_is_told_the_relation() -> None:
    codes = torch.arange(8.0).reshape(2, 2, 2)
    assert relation_inputs(codes).tolist() == [[[0, 1, 1, 0], [2, 3, 0, 1]], [[4, 5, 1, 0], [6, 7, 0, 1]]]


def test_depth_counts_hidden_layers() -> None:
    sizes = [(each.in_features, each.out_features) for each in tanh_layers(9, 8, 20, 3) if hasattr(each, "in_features")]
    assert sizes == [(9, 20), (20, 20), (20, 20), (20, 8)]
