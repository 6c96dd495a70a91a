"""WeakDE: steps before and after its warm-up, against the published code of Valenti and Bacciu 2022 (METHODS 1)."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from tests.families.members import DATASET, Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, dense, encoder, mean_of
from tests.training.training_examples import SPACE, TINY, member
from unbraid.data import FactorTable
from unbraid.families.building import make_supply
from unbraid.families.family_table import FAMILIES
from unbraid.families.weak_de import (
    ClassPrior,
    class_moves,
)
from unbraid.training.population import make_context, make_population

LATENTS, RATE, ADVERSARIAL, SPREAD = 2, 2e-3, 5e-3, 0.4
SETTINGS = {
    "latents": LATENTS, "classes": "shape+hue", "bins": 2, "labels": 60, "learning_rate": RATE, "spread": SPREAD,
    "adversarial_learning_rate": ADVERSARIAL, "adversary_width": 4, "adversary_depth": 2,
}  # fmt: skip
# Three shapes by two ranges of hue, 0 to 1 and 2 to 3; the next shape, one range up and down, around.
N_CLASSES = 6
RELATIONS = [
    [2, 3, 4, 5, 0, 1],
    [1, 0, 3, 2, 5, 4],
    [1, 0, 3, 2, 5, 4],
]


def class_of(number: int) -> int:
    """Of an image: its shape, then which half of the hues."""
    shape, hue = number % 3, number // 3 % 4
    return 2 * shape + (hue > 1)


def tanh_network(weights: Weights, name: str, values: Tensor) -> Tensor:
    hidden = torch.tanh(dense(weights, f"{name}.0", values))
    return dense(weights, f"{name}.4", torch.tanh(dense(weights, f"{name}.2", hidden)))


def cholesky(matrix: Tensor) -> Tensor:
    """Of 2 x 2, by hand."""
    root = torch.zeros(2, 2, dtype=torch.float64)
    root[0, 0] = matrix[0, 0].sqrt()
    root[1, 0] = matrix[1, 0] / root[0, 0]
    root[1, 1] = (matrix[1, 1] - root[1, 0] ** 2).sqrt()
    return root


def fitted(weights: Weights) -> Mapping[str, Tensor]:
    """Each class: mean and spread * covariance + .0001 of its images' codes, as they are encoded now."""
    table = torch.from_numpy(DATASET.array).double().permute(0, 3, 1, 2) / 255
    means, roots = [], []
    for chosen in range(N_CLASSES):
        codes = [encoder(weights, "encoder", table[i]).detach() for i in range(60) if class_of(i) == chosen]
        assert len(codes) == 10
        mean = torch.stack([mean_of([code[d] for code in codes]) for d in range(LATENTS)])
        covariance = torch.zeros(2, 2, dtype=torch.float64)
        for code in codes:
            for i in range(2):
                for j in range(2):
                    covariance[i, j] += (code[i] - mean[i]) * (code[j] - mean[j]) / 9
        means.append(mean)
        roots.append(cholesky(SPREAD * covariance + 1e-4 * torch.eye(2, dtype=torch.float64)))
    known = torch.ones(N_CLASSES, dtype=torch.float64)
    return {"prior.means": torch.stack(means), "prior.roots": torch.stack(roots), "prior.known": known}


def from_class(weights: Weights, chosen: int, noise: Tensor) -> Tensor:
    root = weights["prior.roots"][chosen]
    return weights["prior.means"][chosen] + torch.stack([(row * noise).sum() for row in root])


class Game:
    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.codes: list[Tensor] = []
        self.images = torch.zeros(0)

    def autoencoder(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        self.images = move.batch["images"]
        codes = [encoder(weights, "encoder", image) for image in self.images]
        pairs = zip(codes, self.images, strict=True)
        fit = mean_of([bernoulli(decoder(weights, "decoder", code), image) for code, image in pairs])
        return fit, {"reconstruction": fit}

    def relations(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        """Both ends are drawn from the prior; which class to start from, every one alike."""
        losses = []
        for start, before, after in zip(
            *(move.batch[each] for each in ("from", "from noise", "to noise")), strict=True
        ):
            for relation in range(3):
                chosen = int(start[relation] * N_CLASSES)
                z = from_class(weights, chosen, before[relation])
                target = from_class(weights, RELATIONS[relation][chosen], after[relation])
                which = torch.eye(3, dtype=torch.float64)[relation]
                predicted = tanh_network(weights, "relations", torch.cat([z, which]))
                losses.append(((predicted - target) ** 2).sum())
        return mean_of(losses), {}

    def generator(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        assert torch.equal(move.batch["images"], self.images)  # the same batch, by then encoded otherwise
        codes = [encoder(weights, "encoder", image) for image in self.images]
        self.codes = [code.detach() for code in codes]
        return -mean_of([torch.log(self.judged(weights, code)) for code in codes]), {}

    def discriminator(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        samples = []
        for cube, uniform, noise in zip(
            *(move.batch[f"prior {each}"] for each in ("cube", "class", "noise")), strict=True
        ):
            late = move.step >= self.warmup
            samples.append(from_class(weights, int(uniform * N_CLASSES), noise) if late else 2 * cube - 1)
        own = [self.judged(weights, code) for code in self.codes]
        prior = [self.judged(weights, sample) for sample in samples]
        loss = -(mean_of([torch.log(1 - each) for each in own]) + mean_of([torch.log(each) for each in prior])) / 2
        right = [(each < 0.5).double() for each in own] + [(each > 0.5).double() for each in prior]
        return loss, {"accuracy": mean_of(right)}

    def judged(self, weights: Weights, code: Tensor) -> Tensor:
        """The probability that a code is a sample of the prior."""
        return 1 / (1 + torch.exp(-tanh_network(weights, "discriminator", code)[0]))


def test_two_steps_before_and_two_after_the_warm_up() -> None:
    """The prior is uniform on the cube, then fitted once to the codes of all labelled images; the moves' order."""
    game = Game(warmup=2)
    movers = {
        "autoencoder": Mover(game.autoencoder, ("encoder.", "decoder."), RATE),
        "relations": Mover(game.relations, ("relations.",), RATE),
        "generator": Mover(game.generator, ("encoder.",), ADVERSARIAL),
        "discriminator": Mover(game.discriminator, ("discriminator.",), ADVERSARIAL),
    }
    early, late = ["autoencoder", "generator", "discriminator"], [*movers]
    played = play("weak_de", 4, total=8, warmup=0.25, **SETTINGS)
    assert played.start["prior.moves"].tolist() == RELATIONS
    check(played, movers, [*early, *early, *late, *late], {2: fitted})


def test_the_prior_is_fitted_to_codes_as_they_are_after_training() -> None:
    """With batch norm these are made with running statistics, and fitting leaves the statistics as they are."""
    settings = {**SETTINGS, "classes": "shape", "network": "dense_norm"}
    before = play("weak_de", 2, total=8, warmup=0.25, **settings)
    after = play("weak_de", 3, total=8, warmup=0.25, **settings)
    found = next(move for move in after.moves if move.step == 2)
    for name, value in before.state.items():
        if "running" in name or name.startswith("model/encoder"):
            assert torch.equal(found.weights[name.removeprefix("model/")], value)
    weights = {name.removeprefix("model/encoder."): value for name, value in before.state.items()}
    values = (torch.from_numpy(DATASET.array).double().permute(0, 3, 1, 2) / 255).flatten(1)
    for linear, norm in (("1", "3"), ("4", "6")):
        values = values @ weights[f"{linear}.weight"].T + weights[f"{linear}.bias"]
        values = values * (values > 0) - weights[f"{norm}.running_mean"]
        values = values / (weights[f"{norm}.running_var"] + 1e-5).sqrt() * weights[f"{norm}.weight"]
        values = values + weights[f"{norm}.bias"]
    codes = values @ weights["7.weight"].T + weights["7.bias"]
    for shape in range(3):
        torch.testing.assert_close(found.weights["prior.means"][shape], codes[shape::3].mean(0))


SIZES, KINDS = (2, 3, 3), ("categorical", "cyclic", "ordinal")


def fitted_prior() -> tuple[ClassPrior, np.ndarray, np.ndarray]:
    """Three classes of five, of 40, 2 and 1 images; codes of three numbers."""
    rng = np.random.default_rng(0)
    classes = np.array([1] * 40 + [3] * 2 + [4])
    codes = rng.normal(size=(43, 3)) @ rng.normal(size=(3, 3)) + 5 * classes[:, None]
    prior = ClassPrior(class_moves((5,), ("cyclic",)), 3).double()
    prior.fit(torch.from_numpy(codes), torch.from_numpy(classes), 0.1)
    return prior, codes, classes


def test_each_class_gets_its_mean_and_a_tenth_of_its_covariance() -> None:
    prior, codes, classes = fitted_prior()
    assert prior.known.tolist() == [0, 1, 0, 1, 1]
    for chosen in (1, 3, 4):
        own = codes[classes == chosen]
        covariance = np.cov(own.T) if len(own) > 1 else np.zeros((3, 3))
        np.testing.assert_allclose(prior.means[chosen].numpy(), own.mean(0))
        root = prior.roots[chosen].numpy()
        np.testing.assert_allclose(root @ root.T, 0.1 * covariance + 1e-4 * np.eye(3), atol=1e-12)


def test_fitted_classes_are_drawn_alike_and_others_never() -> None:
    """The published code draws the first class always."""
    prior, _, _ = fitted_prior()
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
    prior, _, _ = fitted_prior()  # 5 classes in a circle; known are 1, 3, 4
    assert prior.moved(torch.tensor([[3, 3], [4, 4], [1, 1]])).tolist() == [[4, 3], [4, 3], [1, 1]]


ROW = FAMILIES["weak_de"]


def test_labels_are_classes_of_ranges_and_even() -> None:
    """Nine places in three ranges each, three shades: 27 classes in C order, three labels of each."""
    context = make_context(ROW, [member("weak_de")], TINY, batch_size=8, steps=10)
    assert context.settings["ranges"] == [3, 3, 3]
    supply = make_supply(ROW, SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"labels": 81}
    x, y, shade = SPACE.factors(supply.items["labelled"].positions).T
    classes = supply.items["labelled"].known["classes"]
    np.testing.assert_array_equal(classes, 9 * (x // 3) + 3 * (y // 3) + shade)
    assert np.bincount(classes).tolist() == [3] * 27


def test_combinations_held_out_of_a_dataset_are_no_fault() -> None:
    """Half of the images, none of shade 0 on the left: those classes stay unfitted, the others share the labels."""
    factors = SPACE.grid()
    table = FactorTable(SPACE.names, SPACE.kinds, factors[(factors[:, 0] > 2) | (factors[:, 2] > 0)])
    assert ROW.facts
    chosen = {"classes": "position_x+shade", "labels": 40, "bins": 3, "kinds": [], "latents": 2}
    settings = {**chosen, **ROW.facts(table, chosen)}
    supply = make_supply(ROW, table, settings, 0)
    assert supply
    counts = np.bincount(np.asarray(supply.items["labelled"].known["classes"]), minlength=9)
    assert counts.tolist() == [0, *[5] * 8]


def test_codes_too_large_for_their_covariance_stop_the_model_and_not_the_training() -> None:
    """Two images in each class; beside codes of 1e9 the ridge is lost to rounding, and no Cholesky root is there."""
    one = member("weak_de", 0, network="dense", classes="shade", labels=6, warmup=0.5)
    context = make_context(ROW, [one], TINY, batch_size=8, steps=4)
    for stacked in (False, True):
        population = make_population(ROW, [one], TINY, context, device=torch.device("cpu"), stacked=stacked)
        state = population.state(0)
        state["model/encoder.5.weight"] *= 1e10
        population.load_state(0, state)
        population.advance(2)
        (reason,) = population.diverged()
        assert reason is not None
        assert (reason.step, reason.reason) == (2, "the loss of the relations is not finite")
        assert all(torch.isfinite(value).all() for name, value in population.state(0).items() if "roots" not in name)
