import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples import SPACE, entangled_codes, grid_factors
from unbraid import Representation, ScoreCard, score
from unbraid.base.printable import printable
from unbraid.base.types import FloatArray, IntArray
from unbraid.base.version import VERSION
from unbraid.metrics import METRICS, Metric
from unbraid.metrics._shared.chance import Noise
from unbraid.scoring import score_page as card_page
from unbraid.scoring.card import load_beside
from unbraid.scoring.diagnosis import CodeDiagnosis, Diagnosis, FactorDiagnosis
from unbraid.scoring.score_page import answer_figures, latents_figure
from unbraid.scoring.score_page_content import MOST_CODES, dead_codes, description, number_text
from unbraid.scoring.scored import Scored
from unbraid.show.html import render

FACTORS = grid_factors(6)
CODES = np.column_stack([np.full(len(FACTORS), 0.5), entangled_codes(FACTORS)])
VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass(frozen=True, eq=False)
class Trees:
    disentanglement: float
    completeness: float
    standard_error: float
    importance: FloatArray
    per_code: FloatArray
    alignment: IntArray
    per_factor: FloatArray
    accuracy: FloatArray
    notes: tuple[str, ...] = ()


def page(card: ScoreCard) -> str:
    return card_page.page(card)


def page_content(card: ScoreCard) -> dict[str, Any]:
    return card_page.page_content(card)


def table(card: ScoreCard) -> str:
    return card_page.table(card)


def saved_page(path: Path) -> str:
    return page(load_beside(path))


def trees(codes: FloatArray, factors: FloatArray) -> Trees:
    """A metric of one's own with every field that the page knows how to show."""
    shape = (codes.shape[1], factors.shape[1])
    importance = np.arange(float(np.prod(shape))).reshape(shape)
    alignment = np.r_[np.arange(1, shape[1]), -1]
    per_factor = np.r_[np.nan, np.full(shape[1] - 1, 0.25)]
    return Trees(
        0.5,
        0.125,
        0.0625,
        importance,
        np.arange(shape[0]) / 8,
        alignment,
        per_factor,
        np.full(shape[1], 0.5),
        ("factor <0> left out & noted",),
    )


def own(**changes: object) -> Metric:
    row = Metric(
        trees, title="Trees <b>", headline="disentanglement", best=1.0, higher_is_better=True, range=(0.0, 1.0),
        summary="Says <this> & that.", limitations="Ignores 'all' the rest.", source="Nobody <1999>",
    )  # fmt: skip
    return replace(row, **changes)


def card_of(codes: FloatArray, factors: FloatArray, **arguments: object) -> ScoreCard:
    card = score(codes, factors, metrics="mig", **arguments)  # pyright: ignore[reportArgumentType]
    result, diagnosis = trees(card.representation.codes, card.representation.factors), card.diagnosis
    assert diagnosis is not None
    return replace(
        card,
        diagnosing=lambda: diagnosis,
        scored={**card.scored, "my:trees": Scored(own(), result, 0.1, chance=Noise(0.1))},
        skipped={"x": "no <grid> here"},
    )


@pytest.fixture(scope="module")
def card() -> ScoreCard:
    return card_of(CODES, FACTORS, kinds=SPACE.kinds, names=SPACE.names)


@pytest.fixture(scope="module")
def html(card: ScoreCard) -> str:
    return page(card)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is about words and numbers alone: figures take most of a page's time."""
    for name in ("hinton_figures", "answer_figures"):
        monkeypatch.setattr(card_page, name, lambda *_: {})
    monkeypatch.setattr(card_page, "latents_figure", lambda *_: None)


class Reader(HTMLParser):
    """Checks that tags nest and collects what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


def words(html: str) -> str:
    return " ".join(" ".join(Reader(html).text).split())


def test_the_page_is_well_formed_with_unlike_ids_that_links_find(html: str) -> None:
    assert html.startswith("<!doctype html>")
    reader = Reader(html)
    assert len(reader.ids) == len(set(reader.ids))
    targets = [attrs["href"] for _, attrs in reader.tags if (attrs.get("href") or "").startswith("#")]
    assert targets
    assert {target[1:] for target in targets if target} <= set(reader.ids)
    used = re.findall(r"url\(#([^)]+)\)", html)
    assert used
    assert set(used) <= set(reader.ids)


def test_nothing_is_loaded_from_anywhere(html: str, card: ScoreCard) -> None:
    inline = re.sub(r'"data:image/png;base64,[^"]*"', '""', html)
    assert not re.search(r"https?:|//[a-z]|@import|@font-face|url\((?!#)", inline)
    assert "http" not in table(card)
    for _, attrs in Reader(html).tags:
        for name in {"src", "href", "srcset", "action", "data", "poster"} & attrs.keys():
            assert re.match(r"#|data:", attrs[name] or ""), attrs[name]


def test_every_score_is_there_with_direction_range_meaning_and_blind_spot(html: str, card: ScoreCard) -> None:
    text = words(html)
    for name, scored in card.scored.items():
        assert name in text
        assert number_text(scored.headline) in text
        assert scored.metric.summary in text
        assert f"Limitations: {scored.metric.limitations}" in text
        assert scored.metric.source in text
    assert "my:trees disentanglement 0.500 ± 0.062" in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("value", "span", "expected"),
    [
        (0.25, (0.0, 1.0), {"start": 0, "width": 25}),
        (-0.5, (-1.0, 1.0), {"start": 25, "width": 25}),
        (1.0, (0.0, 2.0), {"start": 0, "width": 50}),
        (7.0, (0.0, 1.0), {"start": 0, "width": 100}),
        (0.75, (0.5, 1.0), {"start": 0, "width": 50}),
    ],
)
def test_the_bar_runs_from_nought_or_the_low_end_to_the_score(card, value, span, expected) -> None:
    result = replace(trees(CODES, FACTORS), disentanglement=value)
    scored = Scored(own(range=span), result, 0.0)
    content = page_content(replace(card, scored={"t": scored}))
    assert content["groups"][0]["rows"][0]["bar"] == expected
    endless = page_content(replace(card, scored={"t": Scored(own(range=(0.0, np.inf)), result, 0.0)}))
    assert endless["groups"][0]["rows"][0]["bar"] is None
    assert endless["groups"][0]["rows"][0]["range"] == ("0", "∞")


@pytest.mark.usefixtures("undrawn")
def test_dead_codes_are_constant_ones_and_those_of_little_kl() -> None:
    codes = np.random.default_rng(0).standard_normal((len(FACTORS), 4)) * [1, 0.05, 1, 0]
    log_variances = np.broadcast_to([-2.0, 0.0, -1.0, -3.0], codes.shape)
    for given, dead in ((None, [3]), (log_variances, [1, 3])):
        content = page_content(score(codes, FACTORS, metrics="mig", log_variances=given))
        assert content["card"]["dead"] == dead
        assert [code["code"] for code in content["codes"] if code["dead"]] == dead


@pytest.mark.usefixtures("undrawn")
def test_the_codes_table_has_the_value_of_each_code(card: ScoreCard) -> None:
    content = page_content(card)
    assert content["code_metrics"] == ["my:trees"]
    assert [code["scores"] for code in content["codes"]] == [["0.000"], ["0.125"], ["0.250"], ["0.375"]]
    diagnosis = card.diagnosis
    assert diagnosis is not None
    assert [code["factors"] for code in content["codes"]] == [list(each.factors) for each in diagnosis.codes.values()]


def test_names_are_text_wherever_they_appear() -> None:
    names = ('<script>alert("x")</script>', "$\\frac{a$ & b", "位置 é→\u202e", "position_x\"' onload=x", 'id="patch_1"')
    factors = np.random.default_rng(0).integers(0, 3, (90, 5))
    kinds = ("categorical", "ordinal", "cyclic", "ordinal", "continuous")
    card = card_of(factors + 0.1, factors, kinds=kinds, names=names)
    html = page(replace(card, path="<img src=x>&.npz"))
    assert [tag for tag, _ in Reader(html).tags].count("script") == 1
    assert not any("onload" in attrs for _, attrs in Reader(html).tags)
    text = words(html)
    for name in (*names, "<img src=x>&.npz"):
        assert " ".join(printable(name).split()) in text
    assert "<script>" not in table(card)


@pytest.mark.parametrize(
    "change",
    [
        lambda z, y: (z, y[:, :1]),
        lambda z, y: (z[:, 1:2], y),
        lambda z, y: (z[:, :1], y[:, 1:2]),
        lambda z, y: (np.zeros_like(z), y),
        pytest.param(lambda z, y: (np.tile(z, 12), y), marks=pytest.mark.lengthy),
        pytest.param(lambda z, y: (z, np.tile(y, 4)), marks=pytest.mark.lengthy),
        lambda z, y: (z, y + np.random.default_rng(0).uniform(-0.4, 0.4, y.shape)),
    ],
    ids=["one factor", "one code", "one of each", "all dead", "48 codes", "12 factors", "continuous"],
)
def test_inputs_of_any_shape_have_a_page(change: Callable[..., tuple[FloatArray, FloatArray]]) -> None:
    card = card_of(*change(CODES, FACTORS))
    html = page(card)
    Reader(html)
    assert not re.search(r"\b(nan|inf)\b", words(html), re.IGNORECASE)
    assert len(html) < 2_500_000


@pytest.mark.usefixtures("undrawn")
def test_codes_are_called_by_their_names_in_the_card_its_file_and_its_page(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = tuple(f"unit {letter}" for letter in "abcd")
    far = CODES[:, :4].copy()
    far[0, 2] = 1e6
    frame = pandas.DataFrame(far, columns=list(names))
    card = score(frame, FACTORS, metrics="mig", kinds=SPACE.kinds, names=SPACE.names)
    assert any(note.startswith("code unit c: ") for note in card.scored["mig"].notes)
    card.save(tmp_path / "card.json")
    assert ScoreCard.load(tmp_path / "card.json").representation.code_names == names
    text = words(page(card))
    assert "unit a" in text
    assert not re.search(r"\bcode \d", text)


def test_many_samples_do_not_make_a_large_page() -> None:
    rows = np.random.default_rng(0).integers(0, len(FACTORS), 200_000)
    card = score(CODES[rows], FACTORS[rows], metrics="mig", kinds=SPACE.kinds)
    html = page(card)
    assert "Dots: 2,000 of 200,000 samples." in words(html)
    assert len(html) < 1_000_000


@pytest.mark.usefixtures("undrawn")
def test_the_way_to_reproduce_names_path_metrics_and_seed(card: ScoreCard) -> None:
    def command(card: ScoreCard) -> str | None:
        return description(card, dead_codes(card.representation))["reproduce"]["command"]

    example = replace(score(Representation.example(), metrics="mig", seed=3), skipped={"udr": "needs models"})
    told = command(replace(example, path="the shipped example"))
    assert told == "unbraid score --example --metrics mig,udr --seed 3 --html scores.html"
    assert str(command(replace(example, path="my codes.npz"))).startswith("unbraid score 'my codes.npz' ")
    alone = replace(example, scored={}, skipped={}, path="a.npz")
    assert command(alone) == "unbraid score a.npz --metrics none --seed 3 --html scores.html"
    assert page_content(card)["card"]["reproduce"]["command"] is command(card) is None


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("unwanted", [(), ("batch",)])
def test_the_call_on_a_page_gives_the_same_numbers_of_a_circle_of_which_levels_are_missing(
    unwanted: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    factors = np.column_stack([rng.integers(0, 12, 200), rng.integers(0, 3, 200), rng.integers(0, 2, 200)])
    angle = np.pi * factors[:, 0] / 12
    codes = np.column_stack([np.cos(angle), np.sin(angle), factors[:, 1]])
    told: dict[str, Any] = {"names": ["hour", "size", "batch"], "sizes": [24, 3, 2], "unwanted": unwanted}
    first = score(codes, factors, kinds=["cyclic", "ordinal", "categorical"], metrics=["r2", "mcc"], **told)
    again = page_content(first)["card"]["reproduce"]["python"]
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"codes": codes, "factors": factors}
    exec(again, scope)
    assert [each.headline for each in scope["card"].scored.values()] == pytest.approx(
        [each.headline for each in first.scored.values()]
    )


def test_numbers_never_hide_their_magnitude() -> None:
    texts = {0.1234: "0.123", -0.5: "\u22120.500", 0.0: "0.000", 2e-5: "2.00e\u221205", 123.4: "123.4", 5e6: "5.00e+06"}
    assert {number: number_text(number) for number in texts} == texts


@pytest.mark.usefixtures("undrawn")
def test_notes_name_the_factors_that_they_count() -> None:
    result = replace(
        trees(CODES, FACTORS),
        notes=("factors 0 and 2 share a plane", "factor 1 is cut; factor 12 is not", "factors 0, 1 and 2"),
    )
    base = score(CODES, FACTORS, metrics="mig", kinds=SPACE.kinds, names=SPACE.names)
    scored = Scored(own(), result, 0.0, chance=Noise(0.1), factors=base.representation.names)
    card = replace(base, scored={"t": scored})
    notes = [
        "factors shape and hue share a plane",
        "factor size is cut; factor 12 is not",
        "factors shape, size and hue",
    ]
    assert page_content(card)["groups"][0]["rows"][0]["notes"] == notes
    assert card.to_dict()["metrics"]["t"]["notes"] == notes


@pytest.mark.lengthy
def test_a_saved_card_has_the_page_that_it_had(tmp_path: Path) -> None:
    made = score(CODES, FACTORS, metrics=["mig", "dci_lasso", "zero_shot"], kinds=SPACE.kinds, names=SPACE.names)
    scored = {name: replace(each, seconds=0.25) for name, each in made.scored.items()}
    card = replace(made, scored=scored, path="x.npz", held_out="hue > 3", chosen_factors=("shape", "size", "hue"))
    card.save(tmp_path / "scores.json")
    kept = ScoreCard.load(tmp_path / "scores.json", card.representation)
    assert kept.diagnosis == card.diagnosis
    assert kept.to_dict() == card.to_dict()
    content = page_content(kept)
    assert _same(content, page_content(card))
    card.representation.save(tmp_path / "codes.npz")
    assert saved_page(tmp_path / "scores.json") == render("page.html", content)


def _same(one: object, other: object) -> bool:
    np.testing.assert_equal(one, other)
    return True


@pytest.fixture
def finite(card: ScoreCard) -> ScoreCard:
    result = replace(trees(CODES, FACTORS), per_factor=np.full(FACTORS.shape[1], 0.25))
    return replace(card, scored={**card.scored, "my:trees": Scored(own(), result, 0.1, chance=Noise(0.1))})


def test_a_number_of_another_version_of_its_metric_says_so(tmp_path: Path) -> None:
    score(CODES, FACTORS, metrics=["mig", "mig(bins=5)", "med"]).save(tmp_path / "now.json")
    saved = json.loads((tmp_path / "now.json").read_text(encoding="utf-8"))
    version = METRICS["mig"].version
    saved["metrics"]["mig"]["version"] = version - 1
    saved["metrics"]["mig(bins=5)"]["version"] = version + 1
    (tmp_path / "then.json").write_text(json.dumps(saved), encoding="utf-8")

    told = [
        f"computed by version {version - 1} of mig; unbraid {VERSION} has version {version}",
        f"computed by version {version + 1} of mig(bins=5); unbraid {VERSION} has version {version}",
    ]
    assert re.findall("computed by version [^<]*", saved_page(tmp_path / "then.json")) == told
    then = ScoreCard.load(tmp_path / "then.json")
    assert then.to_dict()["metrics"] == saved["metrics"], "the file stays as it is"
    assert re.findall("    (computed by version .*)", then.details()) == told
    then.to_hf(tmp_path / "README.md", model="lab/beta", dataset="sprites")
    assert re.findall("- (computed by version .*)", (tmp_path / "README.md").read_text(encoding="utf-8")) == told
    now = ScoreCard.load(tmp_path / "now.json")
    now.to_hf(tmp_path / "NOW.md", model="lab/beta", dataset="sprites")
    for text in (saved_page(tmp_path / "now.json"), now.details(), (tmp_path / "NOW.md").read_text(encoding="utf-8")):
        assert "computed by version" not in text


def test_an_unwanted_factor_has_the_version_of_explicitness(tmp_path: Path) -> None:
    score(CODES, FACTORS, metrics=["mig"], unwanted="factor_0").save(tmp_path / "now.json")
    saved = json.loads((tmp_path / "now.json").read_text(encoding="utf-8"))
    version = METRICS["explicitness"].version
    saved["metrics"]["unwanted(factor_0)"]["version"] = version + 1
    (tmp_path / "then.json").write_text(json.dumps(saved), encoding="utf-8")
    assert f"computed by version {version + 1} of unw" in ScoreCard.load(tmp_path / "then.json").details()


def test_saved_scores_alone_have_a_page_without_figures_of_samples(finite: ScoreCard, tmp_path: Path) -> None:
    finite.save(tmp_path / "scores.json")
    html = saved_page(tmp_path / "scores.json")
    text = words(html)
    assert Reader(html).ids
    assert number_text(finite.scored["mig"].headline) in text
    assert "my:trees" in text
    assert html.count("Hinton diagram of the") == 2
    assert f"{len(FACTORS)} samples, 4 codes, 3 factors" in text
    for absent in ("scatter", "latents", "codes", "symmetry"):
        assert f'id="{absent}"' not in html


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: "[1, 2", "not the scores of unbraid"),
        (lambda saved: saved | {"input": {}}, "input.path: Field required"),
        (lambda saved: saved | {"metrics": {"mig": saved["metrics"]["mig"] | {"headline": "x"}}}, "no value 'x'"),
        (lambda saved: _with(saved, arrays={"importance": [[1, 2], [3]]}), "inhomogeneous"),
        (lambda saved: _with(saved, arrays={"importance": "x"}), "importance: Input should be a valid array"),
        (lambda saved: _with(saved, arrays={"__class__": [1]}), "no name of a value: '__class__'"),
        (lambda saved: _with(saved, per_factor={"shape": 1.0}), "per_factor is not for the factors"),
        (lambda saved: saved | {"input": saved["input"] | {"n_codes": 2}}, "scores of 576 samples of 2 codes"),
    ],
)
def test_scores_that_are_none_are_refused_by_name(
    finite: ScoreCard, tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    path = tmp_path / "scores.json"
    finite.save(path)
    finite.representation.save(tmp_path / "codes.npz")
    changed = change(json.loads(path.read_text()))
    path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
    with pytest.raises(ValueError, match=reason) as caught:
        saved_page(path)
    assert str(path) in str(caught.value)


def _with(saved: dict[str, Any], **changes: object) -> dict[str, Any]:
    return saved | {"metrics": {"mig": saved["metrics"]["mig"] | changes}}


@pytest.mark.usefixtures("undrawn")
def test_many_codes_are_those_that_matter_and_can_be_searched() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (60, 2))
    codes = 1e-3 * rng.standard_normal((60, 500))
    codes[:, [411, 77]] = 1e-3 * factors
    card = score(codes, factors, metrics=["mig", "snc"])
    content = card_page.page_content(card)
    shown = [row["code"] for row in content["codes"]]
    assert len(shown) == MOST_CODES
    assert {411, 77} <= set(shown)
    assert shown == sorted(shown)


def test_latents_that_hold_a_factor_are_drawn_before_wider_ones() -> None:
    rng = np.random.default_rng(0)
    factors = np.arange(60)[:, None] % 5
    codes = np.column_stack([0.01 * factors, rng.standard_normal((60, 12))])
    card = score(codes, factors, metrics="mig")
    figure = latents_figure(card, [{"codes": [0], "metrics": ["my:trees"]}], np.array([], dtype=int))
    assert figure is not None
    widest = np.sort(np.argsort(-codes.std(axis=0))[:9])
    heads = re.findall(r">(code \d+)<", figure["svg"])
    assert heads == [f"code {code}" for code in (0, *widest)]
    assert figure["cut"] == "Shown: 10 of 13 (own codes of factors, then live codes of largest spread)."


def test_the_picture_of_a_factor_is_that_of_its_kind() -> None:
    rng = np.random.default_rng(0)
    factors = np.column_stack([rng.integers(0, 5, (200, 7)), rng.random(200) * 2 * np.pi])
    codes = rng.standard_normal((200, 6))
    codes[:, 5] = 0.3 * factors[:, 6]
    names = ("own", "shared", "copied", "linear", "curved", "shape", "absent", "angle")
    kinds = ("ordinal",) * 5 + ("categorical", "ordinal", "cyclic")
    said = (
        FactorDiagnosis("own code", (2,)), FactorDiagnosis("shared code", (2,)), FactorDiagnosis("copied", (0, 3)),
        FactorDiagnosis("spread", (0, 1, 4), mixture="linear"), FactorDiagnosis("spread", (0, 1, 4), mixture="curved"),
        FactorDiagnosis("spread", (0, 1), mixture="linear"), FactorDiagnosis("absent"),
        FactorDiagnosis("circle", (1, 4)),
    )  # fmt: skip
    shares = {0: {"curved": 0.2}, 1: {"curved": 0.3}, 4: {"curved": 0.6}}
    known = {code: CodeDiagnosis("several factors", shares.get(code, {})) for code in range(6)}
    diagnosis = Diagnosis(dict(zip(names, said, strict=True)), known, 200, 6)
    card = ScoreCard(Representation(codes, factors, kinds=kinds, names=names), {}, {}, 0, diagnosing=lambda: diagnosis)
    pictures = answer_figures(card, np.array([3]))
    labels = {name: re.findall('aria-label="([^"]*)"', picture) for name, picture in pictures.items()}
    assert labels == {
        "own": ["code 2 against own"],
        "shared": ["code 2 against shared"],
        "copied": ["code 0 against code 3, coloured by copied"],
        "linear": ["linear fit against linear"],
        "curved": ["code 4 against code 1, coloured by curved"],
        "shape": ["code 0 against code 1, coloured by shape"],
        "absent": ["code 5 against absent"],
        "angle": ["code 1 against code 4, coloured by angle"],
    }
    all_dead = answer_figures(card, np.arange(6))
    assert all_dead == {}
