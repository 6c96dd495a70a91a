"""The page of a run, as a reader and a browser see it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from scipy.stats import spearmanr

import unbraid
from tests.scoring.test_score_page import words
from tests.show.browser import shown
from tests.training.training_examples import blocks
from unbraid.base.types import FloatArray
from unbraid.data import FactorSpace, Representation
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families.family import Part
from unbraid.files.trust import Trusted
from unbraid.runs.live import decoder as models
from unbraid.runs.live.sliders import Slider, matched, sliders
from unbraid.runs.run import Run, open_run
from unbraid.runs.run_page import run_page

DATA = blocks(channels=3)
HOSTILE = "<script>alert(1)</script>"
PIXELS = """(canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  return Array.from(copy.getImageData(0, 0, canvas.width, canvas.height).data);
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def pca(folder: Path) -> Run:
    run = unbraid.train("pca", DATA, steps=1, latents=4, out=folder, processes=0)[0]
    unbraid.score(run.codes(), metrics=["mig", "dci_lasso"]).save(run.path / "scores.json")
    return open_run(run.path, device="cpu")


@pytest.fixture(scope="module")
def vae(folder: Path) -> Run:
    run = unbraid.train("vae", DATA, steps=3, batch_size=8, latents=3, learning_rate=1e-2, out=folder, processes=0)[0]
    return open_run(run.path, device="cpu")


@pytest.fixture(scope="module")
def page(pca: Run, folder: Path) -> Path:
    path = folder / "pca.html"
    path.write_text(run_page(pca, dataset=DATA), encoding="utf-8")
    return path


def ready(tab: Page) -> Page:
    tab.wait_for_selector("#live[data-ready=yes]")
    return tab


def pixels(tab: Page, canvas: str) -> FloatArray:
    """(height, width, 3), 0 .. 1, once what is due has been drawn."""
    tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    drawn = np.array(tab.eval_on_selector(canvas, PIXELS), dtype=float).reshape(*DATA.image_shape[:2], 4)
    return drawn[..., :3] / 255


def decoded(run: Run, code: FloatArray) -> FloatArray:
    return np.clip(run.decode(np.asarray(code)[None])[0], 0, 1)


def seed_codes(run: Run) -> FloatArray:
    chosen = np.random.default_rng(0).choice(len(DATA), models.SEEDS, replace=False)
    return run.encode(DATA.images(chosen))


def close(drawn: FloatArray, expected: FloatArray) -> bool:
    """To half a step of a byte, and what half precision adds."""
    return float(np.abs(drawn - expected).max()) < 0.5 / 255 + 1e-3


def test_the_scores_begin_with_the_diagnosis(page: Path, pca: Run) -> None:
    diagnosis = unbraid.diagnose(pca.codes())
    text = words(page.read_text(encoding="utf-8"))
    assert f"{diagnosis.in_short()}." in text
    assert all(words(factor.columns()[0]) in text for factor in diagnosis.factors.values())


@pytest.mark.lengthy
def test_a_slider_draws_what_pytorch_decodes(browser: Browser, page: Path, pca: Run) -> None:
    ways, seeds = sliders(pca.codes(), pca.parts), seed_codes(pca)
    with shown(browser, page) as tab:
        ready(tab)
        assert close(pixels(tab, "#live canvas"), decoded(pca, seeds[0]))
        tab.get_by_label(re.compile(f"^{ways[1].name} ")).first.fill("0.9")
        moved = ways[1].moved(seeds[0], np.array([0.9]))[0]
        assert close(pixels(tab, "#live canvas"), decoded(pca, moved))
        assert not close(decoded(pca, moved), decoded(pca, seeds[0]))
        # The other codes stay where they were put.
        tab.get_by_label(re.compile(f"^{ways[0].name} ")).first.fill("0")
        moved = ways[0].moved(moved, np.array([0.0]))[0]
        assert close(pixels(tab, "#live canvas"), decoded(pca, moved))
        tab.get_by_role("button", name="Back to the image").click()
        assert close(pixels(tab, "#live canvas"), decoded(pca, seeds[0]))


def test_another_image_and_swapped_codes_are_decoded(browser: Browser, page: Path, pca: Run) -> None:
    ways, seeds = sliders(pca.codes(), pca.parts), seed_codes(pca)
    with shown(browser, page) as tab:
        ready(tab).get_by_role("group", name="Image to start from").get_by_role("button", name="Image 5").click()
        assert close(pixels(tab, "#live canvas"), decoded(pca, seeds[4]))
        tab.get_by_role("group", name="Image B").get_by_role("button", name="Image 4").click()
        tab.get_by_role("checkbox").nth(0).uncheck()
        tab.get_by_role("checkbox").nth(2).check()
        swapped = [way.codes[0] for way in (ways[1], ways[2])]
        a, b = seeds[0].copy(), seeds[3].copy()
        a[swapped], b[swapped] = seeds[3][swapped], seeds[0][swapped]
        for place, code in enumerate((seeds[0], a, b, seeds[3])):
            assert close(pixels(tab, f"#swap figure:nth-of-type({place + 1}) canvas"), decoded(pca, code))


@pytest.mark.slow
def test_a_shared_decoder_draws_in_less_than_thirty_milliseconds(browser: Browser, tmp_path: Path) -> None:
    """The quickest of many, which is what a machine with nothing else to do needs for each."""
    data = blocks(side=64)
    run = unbraid.train("vae", data, steps=1, batch_size=4, out=tmp_path, processes=0)[0]
    page = tmp_path / "page.html"
    page.write_text(run_page(run, dataset=data), encoding="utf-8")
    assert page.stat().st_size < 1_300_000
    with shown(browser, page) as tab:
        ready(tab)
        times = tab.evaluate(
            """async () => {
              const slider = document.querySelector("#slider0"), times = [];
              for (let i = 0; i < 40; i++) {
                slider.value = i / 40;
                slider.dispatchEvent(new Event("input"));
                await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                times.push(+document.querySelector("#live").dataset.milliseconds);
              }
              return times;
            }"""
        )
    assert 0 < min(times) < 30


@pytest.mark.lengthy
def test_two_runs_move_together(browser: Browser, pca: Run, vae: Run, tmp_path: Path) -> None:
    page = tmp_path / "two.html"
    page.write_text(run_page(vae, compare=pca, dataset=DATA), encoding="utf-8")
    pairs = matched(*((run.codes(), sliders(run.codes(), run.parts)) for run in (vae, pca)))
    first, second = (seed_codes(run)[0] for run in (vae, pca))
    with shown(browser, page) as tab:
        assert ready(tab).get_by_role("slider").count() == len(pairs) == 4
        tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for place, (mine, theirs, _) in enumerate(pairs):
            tab.locator(f"#slider{place}").fill("0.25")
            first = first if mine is None else mine.moved(first, np.array([0.25]))[0]
            second = second if theirs is None else theirs.moved(second, np.array([0.25]))[0]
        assert close(pixels(tab, "[data-view='0'] canvas"), decoded(vae, first))
        assert close(pixels(tab, "[data-view='1'] canvas"), decoded(pca, second))


@pytest.mark.lengthy
def test_images_made_beforehand_stand_in_for_a_decoder_that_a_page_cannot_run(
    browser: Browser, pca: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "SLOWEST", 0)
    page = tmp_path / "strips.html"
    page.write_text(run_page(pca, dataset=DATA), encoding="utf-8")
    way, seed = sliders(pca.codes(), pca.parts)[2], seed_codes(pca)[1]
    with shown(browser, page) as tab:
        assert "cannot run in a page: an image takes it 0 million multiply-adds" in ready(tab).inner_text("#live")
        assert tab.locator("#swap").count() == 0
        group = tab.get_by_role("group", name="Image to start from")
        assert group.get_by_role("button").count() == models.ROWS
        group.get_by_role("button", name="Image 2").click()
        tab.locator("#slider2").fill("0.62")
        drawn = pixels(tab, "#live canvas")
    places = [decoded(pca, code) for code in way.moved(seed, way.places(models.STEPS))]
    errors = [float(np.abs(drawn - each).mean()) for each in places]
    assert np.argmin(errors) == 5  # of 0 .. 8, the nearest to 0.62
    assert errors[5] < 0.02  # packed with a little loss


def test_names_show_as_text(browser: Browser, tmp_path: Path) -> None:
    space = FactorSpace((HOSTILE, "</style><b>", "x' onerror='alert(1)"), (9, 9, 3), ("cyclic", "ordinal", "ordinal"))
    data = ArrayDataset(DATA.array, space)
    run = unbraid.train("pca", data, steps=1, latents=3, out=tmp_path, processes=0)[0]
    unbraid.score(run.codes(), metrics=["mig", "dci_lasso"]).save(run.path / "scores.json")
    named = tmp_path / "<img src=x onerror=alert(2)>"
    run.path.rename(named)
    config = {**run.config, "dataset": {**run.config["dataset"], "name": f"{HOSTILE}</script>"}}
    (named / "config.json").write_text(json.dumps(config))
    page = tmp_path / "page.html"
    page.write_text(run_page(open_run(named, device="cpu")), encoding="utf-8")
    with shown(browser, page) as tab:
        text = ready(tab).inner_text("body")
        assert HOSTILE in tab.title()
        for name in (*space.names, named.name, f"{HOSTILE}</script>"):
            assert name in text
        assert tab.locator("img[src=x]").count() == 0


def test_images_that_are_not_at_hand_are_named_without_their_folder(vae: Run, tmp_path: Path) -> None:
    assert str(vae.path.parent) not in words(run_page(vae))
    path = str(tmp_path / "scans.npy")
    run = replace(vae, config={**vae.config, "dataset": {**vae.config["dataset"], "name": path, "options": {}}})
    said = "The dataset cannot be opened here (scans.npy is read only if --trust-data names it)"
    assert said in words(run_page(run))
    trusted = replace(run, config={**run.config, "dataset": {**run.config["dataset"], "name": Trusted(path)}})
    assert "The dataset cannot be opened here (scans.npy: no such file" in words(run_page(trusted))


def test_runs_of_other_images_are_not_compared(pca: Run, vae: Run) -> None:
    other = replace(vae, config={**vae.config, "dataset": {**vae.config["dataset"], "content": "0"}})
    with pytest.raises(ValueError, match="trained on other images"):
        run_page(pca, compare=other, dataset=DATA)


def test_sliders_come_by_kl_and_a_circle_is_one() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 4000)
    codes = np.c_[rng.normal(0, 1, (4000, 3)), np.cos(angle), np.sin(angle)]
    # KL of N(m, v) from N(0, 1) is (m² + v - log v - 1) / 2: about 0.5 here where v = 1.
    log_variances = np.tile([-4.0, 0.0, -1.0, 0.0, 0.0], (4000, 1))
    codes[:, 1] *= 0.01
    # One that is as wide as can be and says nothing has a KL of 1.5 nats and more, and does not count.
    codes[:, 2] *= 0.01
    log_variances[:, 2] = -4.0
    found = sliders(
        Representation(codes, rng.integers(0, 2, (4000, 1)), log_variances=log_variances),
        (Part("latents", "gaussian", 3), Part("turn", "circle", 2)),
    )
    assert [each.codes for each in found] == [(0,), (2,), (3, 4), (1,)]
    assert (found[1].kl or 0) > 1.5
    assert [each.informative for each in found] == [True, False, True, False]
    assert found[0].kl == pytest.approx(0.5 * (1 + np.exp(-4) + 4 - 1), abs=0.1)
    low, high = np.quantile(codes[:, 0], [0.02, 0.98])
    moved = found[0].moved(codes[0], np.array([0.0, 1.0]))
    assert moved[:, 0] == pytest.approx([low, high])
    assert (moved[:, 1:] == codes[0, 1:]).all()
    turned = found[2].moved(codes[0], found[2].places(4))
    assert turned[:, 3:] == pytest.approx(np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]), abs=1e-12)


def test_matched_sliders_have_the_largest_total_correlation_and_rise_together() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=(500, 3))
    other = np.c_[-(one[:, 2] ** 3), one[:, 0] + 0.2 * rng.normal(size=500), rng.normal(size=(500, 2))]
    factors = np.zeros((500, 1), int)
    representations = [Representation(each, factors) for each in (one, other)]
    ways = [[Slider((k,), -1.0, 2.0, None, 1.0) for k in range(each.shape[1])] for each in (one, other)]
    pairs = matched((representations[0], ways[0]), (representations[1], ways[1]))
    partners = {mine.codes[0]: theirs for mine, theirs, _ in pairs if mine and theirs}
    assert partners[0].codes == (1,)
    assert partners[2] == Slider((0,), 2.0, -1.0, None, 1.0)
    assert {round(alike, 6) for mine, _, alike in pairs if mine and mine.codes == (0,)} == {
        round(abs(float(spearmanr(one[:, 0], other[:, 1]).statistic)), 6)
    }
    assert [theirs.codes[0] for mine, theirs, _ in pairs if mine is None and theirs] == [
        next(k for k in (2, 3) if partners[1].codes != (k,))
    ]


@pytest.mark.parametrize("way", [1, -1])
def test_matched_circles_start_and_go_around_together(way: int) -> None:
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    other = 0.7 + way * angle
    one, two = (np.c_[np.cos(each), np.sin(each)] for each in (angle, other))
    ways = [Slider((0, 1), 0.0, 2 * np.pi, None, 1.0)]
    factors = np.zeros((400, 1), int)
    ((mine, theirs, alike),) = matched((Representation(one, factors), ways), (Representation(two, factors), ways))
    assert mine is not None
    assert theirs is not None
    assert alike == pytest.approx(1.0)
    places = angle / (2 * np.pi)
    assert mine.moved(one[0], places) == pytest.approx(one)
    assert theirs.moved(two[0], places) == pytest.approx(two)
