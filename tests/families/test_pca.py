"""Principal components against the eigenvectors of a covariance matrix added up by loops, and scikit-learn's."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import sklearn.decomposition
import torch
from torch import Tensor

from tests.families.members import DATASET, coded
from unbraid.families.pca import DENSE, PrincipalComponents, principal_components


@pytest.mark.parametrize("fit_images", [20_000, 20])
def test_codes_are_coordinates_along_the_directions_of_most_variance(fit_images: int) -> None:
    """Of all 60 images, or of 20 evenly spaced."""
    found = coded("pca", latents=3, fit_images=fit_images)
    rows = DATASET.array.transpose(0, 3, 1, 2).reshape(60, 6) / 255.0
    fitted = rows[:: 3 if fit_images == 20 else 1]
    mean = sum(fitted, np.zeros(6)) / len(fitted)
    covariance = sum((np.outer(row - mean, row - mean) for row in fitted), np.zeros((6, 6))) / (len(fitted) - 1)
    vectors = np.linalg.eigh(covariance)[1].T[::-1]
    expected = (rows @ vectors[:3].T) - mean @ vectors[:3].T
    codes = found.codes.numpy()
    seen = expected[: len(codes)]
    signs = np.sign((codes * seen).sum(0))
    np.testing.assert_allclose(codes, seen * signs, atol=1e-6)
    back = seen @ vectors[:3] + mean
    np.testing.assert_allclose(found.decoded.flatten(1).numpy(), back, atol=1e-6)
    assert found.log_variances is None
    components = found.weights["pca.components"]
    assert bool((components.gather(1, components.abs().argmax(1, keepdim=True)) > 0).all())
    assert torch.equal(found.images[1].flatten(), torch.from_numpy(rows[1]))


SHAPES = {"dense": (3, 5, 6), "iterated": (1, 31, 34), "table": (7,)}


def data(shape: tuple[int, ...], n: int = 150) -> Tensor:
    """Correlated features whose variances fall slowly, far from centred."""
    generator = torch.Generator().manual_seed(0)
    n_features = int(np.prod(shape))
    mixing = torch.randn(n_features, n_features, generator=generator) / n_features**0.5
    scales = torch.linspace(1, 0.1, n_features)
    return (torch.randn(n, n_features, generator=generator) * scales @ mixing + 3).unflatten(1, shape)


def in_chunks(images: Tensor, size: int) -> Callable[[], Iterable[Tensor]]:
    return lambda: images.split(size)


@pytest.mark.parametrize(("name", "chunk"), [("dense", 1000), ("dense", 37), ("iterated", 37), ("table", 37)])
def test_components_codes_and_decoded_images_are_scikit_learns(name: str, chunk: int) -> None:
    images = data(SHAPES[name])
    rows = images.flatten(1).double().numpy()
    assert (rows.shape[1] > DENSE) == (name == "iterated")
    peer = sklearn.decomposition.PCA(5, svd_solver="full").fit(rows)
    mean, components, variances = principal_components(in_chunks(images, chunk), 5)
    np.testing.assert_allclose(mean, peer.mean_, atol=1e-12)
    np.testing.assert_allclose(variances, peer.explained_variance_, rtol=1e-9)
    signs = np.sign((components.numpy() * peer.components_).sum(1))
    np.testing.assert_allclose(components, peer.components_ * signs[:, None], atol=1e-7)

    model = PrincipalComponents(SHAPES[name], 5)
    model.fit(in_chunks(images, chunk))
    codes = model.encode(images)
    expected = peer.transform(rows) * signs
    np.testing.assert_allclose(codes, expected, atol=1e-4)
    decoded = peer.inverse_transform(peer.transform(rows))
    assert model.decode(codes).shape == images.shape
    np.testing.assert_allclose(model.decode(codes).flatten(1), decoded, atol=1e-4)


def test_a_fitted_model_is_its_state() -> None:
    images = data((3, 5, 6))
    model, copy = PrincipalComponents((3, 5, 6), 4), PrincipalComponents((3, 5, 6), 4)
    model.fit(in_chunks(images, 50))
    copy.load_state_dict(model.state_dict())
    assert not list(model.parameters())
    torch.testing.assert_close(copy.encode(images), model.encode(images), rtol=0, atol=0)


def test_directions_without_variance_have_variance_zero() -> None:
    images = data((7,), 20)
    images[:, 2:] = images[:, :1]
    _, components, variances = principal_components(in_chunks(images, 100), 4)
    assert bool(components.isfinite().all())
    assert (variances[:2] > 0.01).all()
    np.testing.assert_allclose(variances[2:], 0, atol=1e-12)


@pytest.mark.parametrize(("n", "n_components"), [(150, 8), (5, 5)])
def test_more_components_than_the_data_has_are_refused(n: int, n_components: int) -> None:
    with pytest.raises(ValueError, match=f"got {n} rows of 7 features"):
        principal_components(in_chunks(data((7,), n), 100), n_components)
