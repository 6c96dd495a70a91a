import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, CDPSession, Page
from scipy.stats import spearmanr

from tests.show.browser import shown
from tests.show.example_study import YAML, ExampleStudy, example_results, keep_rankings
from tests.training.training_examples import blocks
from unbraid import train
from unbraid.ranking.cache import read_ranking
from unbraid.runs.live.small_picture import picture_or_reason, pictures
from unbraid.runs.run import open_run
from unbraid.scoring.agreement import agreement
from unbraid.scoring.by_setting import quartiles
from unbraid.show.html import render
from unbraid.studies.study_page import duel, page_content, study_data, study_page

HOSTILE = "<script>alert(1)</script>"
ENDING = "</script><img src=x onerror=alert(2)>&amp;\"'"
N_RUNS = 60


def example(folder: Path, n_runs: int = N_RUNS) -> ExampleStudy:
    return ExampleStudy(example_results(n_runs), folder, SimpleNamespace(name=f"example {ENDING}", udr=None))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ExampleStudy:
    """Names and reasons that are markup, and three runs with a model."""
    made = example(tmp_path_factory.mktemp("study"))
    frame = made.frame
    frame.loc[frame["family"] == "cci_vae", "setting"] = HOSTILE
    frame.loc[0, "run"] = ENDING
    frame.loc[frame["state"] == "failed", "reason"] = f"out of memory {ENDING}"
    frame.loc[frame["state"] == "diverged", "reason"] = None
    keep_rankings(made)
    [run] = train("beta_vae", blocks(), steps=1, latents=3, out=made.folder / "runs", processes=0)
    for place in (1, 2, 24):
        (made.folder / "runs" / frame.loc[place, "run"]).symlink_to(run.path)
    return made


@pytest.fixture(scope="module")
def file(study: ExampleStudy) -> Path:
    path = study.folder / "report.html"
    path.write_text(study_page(study, study.frame), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(browser: Browser, file: Path) -> Iterator[Page]:
    with shown(browser, file) as tab:
        yield tab


@pytest.fixture
def tab(opened: Page) -> Page:
    """The page as it opens."""
    opened.reload()
    return opened


def ranked(tab: Page, cell: str = ".k-run button") -> list[str]:
    return tab.locator(f"#ranking-body {cell}").evaluate_all("found => found.map(each => each.dataset.run)")


def best_first(frame: pd.DataFrame, column: str, ascending: bool = False) -> list[str]:
    return frame.sort_values(column, ascending=ascending, kind="stable", na_position="last")["run"].tolist()


# What the page is given


def test_names_cannot_leave_the_data(file: Path) -> None:
    html = file.read_text(encoding="utf-8")
    assert html.count("<script") == html.count("</script") == 4
    assert "<img src=x" not in html
    assert ENDING in json.loads(re.findall(r'id="study">(.*?)</script>', html)[0])["runs"]["run"]


def test_a_damaged_run_says_so_in_place_of_its_picture(study: ExampleStudy, tmp_path: Path) -> None:
    run = study.folder / "runs" / study.frame.loc[1, "run"]
    for name in ("config.json", "status.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    (tmp_path / "weights.safetensors").write_bytes(b"{}")
    assert "weights.safetensors" in picture_or_reason(lambda: open_run(tmp_path))["missing"]


# What a reader meets


def test_names_are_text(tab: Page, study: ExampleStudy) -> None:
    assert tab.locator("h1").text_content() == f"example {ENDING}"
    assert ENDING in ranked(tab)
    assert (
        tab.locator("#ranking-body .k-setting", has_text=HOSTILE).count() == (study.frame["setting"] == HOSTILE).sum()
    )
    assert tab.locator("#yaml").text_content() == YAML
    tab.locator("#ranking-body button", has_text="</script>").click()
    assert tab.locator("#run-title").text_content() == ENDING
    assert tab.locator("img[src=x]").count() == 0


def test_a_head_sorts_and_sorts_back(tab: Page, study: ExampleStudy) -> None:
    assert ranked(tab) == best_first(study.frame, "udr.score")
    head = tab.locator("th:has([data-key='mig.score'])")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert ranked(tab) == best_first(study.frame, "mig.score")
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert ranked(tab) == best_first(study.frame, "mig.score", ascending=True)
    assert tab.evaluate("document.activeElement.dataset.key") == "mig.score"
    assert tab.locator("#ranking-said").text_content() == "Sorted by mig, rising."
    tab.locator("[data-key='seed']").click()
    assert ranked(tab) == best_first(study.frame, "seed", ascending=True)


def test_filters_leave_the_runs_that_pass_everywhere(tab: Page, study: ExampleStudy) -> None:
    frame = study.frame
    form = tab.locator("#filters")
    form.get_by_label("Family").select_option("factor_vae")
    kept = frame[frame["family"] == "factor_vae"]
    assert sorted(ranked(tab)) == sorted(kept["run"])
    assert form.locator("output").inner_text() == f"{len(kept)} of {len(frame)} runs"
    assert tab.locator("#scatter-plot .dot").count() == kept["mig.score"].notna().sum()
    form.get_by_label("Setting").select_option(label="gamma=20")
    assert sorted(ranked(tab)) == sorted(kept[kept["setting"] == "gamma=20"]["run"])
    form.get_by_label("Family").select_option("beta_vae")  # has no gamma
    assert sorted(ranked(tab)) == sorted(frame[frame["family"] == "beta_vae"]["run"])
    form.get_by_role("button").click()
    assert len(ranked(tab)) == len(frame)
    form.get_by_label("State").select_option("failed")
    assert sorted(ranked(tab)) == sorted(frame[frame["state"] == "failed"]["run"])
    assert tab.locator("#scatter-plot").text_content() == "No shown run has both numbers."
    form.get_by_label("State").select_option("")
    form.get_by_label("Search").fill("MEMORY <img")
    assert sorted(ranked(tab)) == sorted(frame[frame["state"] == "failed"]["run"])
    form.get_by_label("Search").fill("no such run")
    assert tab.locator("#ranking-none").is_visible()


def test_any_two_columns_are_drawn_with_their_correlation(tab: Page, study: ExampleStudy) -> None:
    tab.locator("#scatter-x").select_option("hyper.beta")  # many equal values
    tab.locator("#scatter-y").select_option("train.kl")
    both = study.frame[["hyper.beta", "train.kl"]].dropna()
    rho: Any = spearmanr(both["hyper.beta"], both["train.kl"]).statistic
    says = tab.locator("#scatter-says").text_content()
    assert says == f"{len(both)} runs, Spearman's ρ = {rho:.3f}.".replace("-", "\N{MINUS SIGN}")
    places = "dots => [...new Set(dots.map(dot => Number(dot.getAttribute('cx'))))].sort((a, b) => a - b)"
    one, two, *_, last = tab.locator("#scatter-plot circle.dot").evaluate_all(places)
    assert (two - one) / (last - one) == pytest.approx((2 - 1) / (16 - 1))
    tab.locator("#scatter-log-x").check()
    one, two, *_, last = tab.locator("#scatter-plot circle.dot").evaluate_all(places)
    assert (two - one) / (last - one) == pytest.approx(1 / 4)


def test_boxes_are_those_of_numpy(tab: Page, study: ExampleStudy) -> None:
    tab.locator("#boxes-column").select_option("mig.score")
    boxes = quartiles(study.frame, "mig.score").boxes
    assert tab.locator("#boxes-plot .box").count() == len(boxes)
    tab.locator("#boxes summary").click()
    rows = tab.locator("#boxes-numbers tbody tr").all_inner_texts()
    found = {tuple(row.split("\t")[:2]): row.split("\t")[2:] for row in rows}
    for box in boxes:
        own = np.sort(box.values)
        reach = 1.5 * (box.upper_quartile - box.lower_quartile)
        inside = own[(own >= box.lower_quartile - reach) & (own <= box.upper_quartile + reach)]
        numbers = [inside[0], box.lower_quartile, box.median, box.upper_quartile, inside[-1]]
        n, *rest = found[box.family, box.setting]
        assert int(n) == box.n
        assert [float(number) for number in rest] == pytest.approx(numbers, abs=0.000_501)
    tab.locator("#boxes-order").select_option("median")
    best = max(boxes, key=lambda box: box.median)
    assert tab.locator("#boxes-plot .box").first.locator("title").text_content() == f"{best.family} {best.setting}"


def test_no_model_is_the_best_by_a_text(study: ExampleStudy) -> None:
    frame = study.frame.iloc[[1, 2, 24]].drop(columns=[name for name in study.frame.columns if "." in name])
    path = study.folder / "runs" / str(frame["run"].iloc[0])
    opened = dict.fromkeys(frame["run"], lambda: open_run(path, device="cpu"))
    assert duel(frame.assign(collapsed="yes"), opened) is None
    assert duel(frame.assign(collapsed="yes", **{"mig.score": [0.1, 0.2, 0.3]}), opened) is not None


@pytest.mark.parametrize("turn", [1, -1])
def test_a_whisker_never_ends_inside_its_box(browser: Browser, tmp_path: Path, turn: int) -> None:
    frame = pd.DataFrame({"run": list("abcd"), "family": "vae", "setting": "", "seed": range(4), "state": "finished"})
    frame = frame.assign(reason=None, dataset="sprites", **{"mig.score": [0.5 + 0.1 * turn, *[0.5] * 3]})
    path = tmp_path / "report.html"
    path.write_text(study_page(ExampleStudy(frame, tmp_path), frame), encoding="utf-8")
    with shown(browser, path) as tab:
        tab.locator("#boxes summary").click()
        numbers = [float(each) for each in tab.locator("#boxes-numbers td.num").all_inner_texts()[1:]]
    # numpy.percentile of .5, .5, .5 and .6: the quartile is .525, and .6 is farther from it than 1.5 x .025
    assert numbers == ([0.5, 0.5, 0.5, 0.525, 0.525] if turn > 0 else [0.475, 0.475, 0.5, 0.5, 0.5])


def test_correlations_are_those_of_the_study_and_lead_to_the_scatter_plot(tab: Page, study: ExampleStudy) -> None:
    tab.locator("#agreement-scope").select_option(label="beta_vae")
    measured = agreement(study.frame)
    names, rho, p = measured.matrix("beta_vae")
    i, j = names.index("mig.score"), names.index("train.kl" if "train.kl" in names else "snc.score")
    cell = tab.locator(f"#agreement-table [data-row='{names[i]}'][data-column='{names[j]}']")
    label = cell.get_attribute("aria-label") or ""
    assert f"ρ {rho[i, j]:.3f}".replace("-", "\N{MINUS SIGN}") in label
    assert ("< 0.0005" if p[i, j] < 0.0005 else f"p = {p[i, j]:.3f}") in label
    assert (cell.text_content() or "").count("*") == sum(p[i, j] < level for level in (0.05, 0.01, 0.001))
    cell.click()
    assert tab.locator("#scatter-x").input_value() == names[j]
    assert tab.locator("#scatter-y").input_value() == names[i]
    tab.locator("#agreement-table [tabindex='0']").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.dataset.column") == names[2]


def test_the_map_shows_the_similarity_of_the_pair_under_the_cursor(tab: Page, study: ExampleStudy) -> None:
    ranking = read_ranking(next((study.folder / "udr").glob("*.npz")))
    data = study_data(study, study.frame, study.folder)
    order = [ranking.runs.index(data["runs"]["run"][run]) for run in data["udr"][0]["runs"]]
    canvas = tab.locator("#udr-map")
    canvas.focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    first, second = order[1], order[2]
    assert tab.locator("#udr-pair b").text_content() == f"UDR {ranking.pairs[first, second]:.2f}"
    shown_ = tab.locator("#udr-pair td[title]").evaluate_all("cells => cells.map(cell => Number(cell.title))")
    assert shown_ == pytest.approx(np.abs(ranking.matrices[first, second]).ravel(), abs=0.008)
    box = canvas.bounding_box()
    assert box
    tab.mouse.move(box["x"] + box["width"] - 2, box["y"] + 2)
    assert tab.locator("#udr-said").text_content()
    assert tab.locator("#udr-pair b").text_content() == f"UDR {ranking.pairs[order[0], order[-1]]:.2f}"


def test_generalisation_is_summed_up_by_setting(tab: Page, study: ExampleStudy) -> None:
    own = study.frame[(study.frame["family"] == "beta_vae") & (study.frame["setting"] == "beta=4")]
    column = own["compositional.linear.both"].dropna()
    text = tab.locator("#generalisation-table tr", has_text="beta=4").first.locator("td").nth(1).text_content()
    assert text == f"{column.mean():.3f} ± {column.std():.3f} ({len(column)})"


def test_runs_that_broke_have_their_reasons(tab: Page, study: ExampleStudy) -> None:
    broken = study.frame[study.frame["state"].isin(["failed", "diverged"])]
    assert tab.locator("#broken-body tr").count() == len(broken)
    reasons = tab.locator("#broken-body .why").all_text_contents()
    assert sorted(reasons) == sorted(broken["reason"].fillna("no reason was recorded"))
    assert tab.locator("#facts div", has_text="failed").inner_text().split() == [
        "failed",
        str((broken["state"] == "failed").sum()),
    ]


def test_a_study_without_results_still_has_a_page(browser: Browser, tmp_path: Path) -> None:
    study = example(tmp_path, 3)
    kept = study.frame[["run", "family", "setting", "seed", "state", "reason", "dataset", "steps"]]
    waiting = ExampleStudy(kept.assign(state="waiting"), tmp_path, study.config)
    (tmp_path / "page.html").write_text(study_page(waiting, waiting.frame))
    with shown(browser, tmp_path / "page.html") as tab:
        assert len(ranked(tab)) == 3
        assert tab.locator("#broken-none").is_visible()
        assert tab.locator("#scatter").is_hidden()
        assert tab.get_by_role("link", name="Scatter").is_hidden()
        assert tab.get_by_role("link", name="Ranking").is_visible()


# In a notebook


# Sizes


@pytest.mark.slow
def test_a_study_of_300_runs_has_its_page_in_half_a_minute_and_30_megabytes(
    study: ExampleStudy, tmp_path: Path
) -> None:
    many = example(tmp_path, 300)
    keep_rankings(many)
    (tmp_path / "runs").mkdir()
    for run in many.frame.loc[many.frame["state"] == "finished", "run"]:
        (tmp_path / "runs" / run).symlink_to(study.folder / "runs" / study.frame.loc[1, "run"])
    started = process_time()
    assert len(study_page(many, many.frame)) < 30e6
    assert process_time() - started < 30


@pytest.mark.slow
def test_300_runs_take_half_a_minute_and_30_megabytes_at_the_rate_of_three(study: ExampleStudy) -> None:
    """The rankings of all against all are in test_a_study_of_300_runs; pictures take most of the time."""
    runs = {run.id: partial(open_run, run.path) for run in study.runs if run.path.is_dir()}
    started = process_time()
    made = pictures(runs)
    assert 300 * (process_time() - started) / len(runs) < 30
    assert 300 * len(json.dumps(made)) / len(runs) < 30e6


def task_seconds(session: CDPSession) -> float:
    return next(
        each["value"] for each in session.send("Performance.getMetrics")["metrics"] if each["name"] == "TaskDuration"
    )


@pytest.mark.slow
def test_500_runs_load_in_two_seconds(browser: Browser, study: ExampleStudy, tmp_path: Path) -> None:
    many = example(tmp_path, 500)
    content = page_content(many, many.frame, tmp_path)
    [made] = {
        picture["src"]: picture
        for picture in page_content(study, study.frame, study.folder)["pictures"].values()
        if "src" in picture
    }.values()
    padded = made | {"padding": "A" * 8000}  # as large as pictures of longer training are
    page = tmp_path / "page.html"
    page.write_text(render("study.html", content | {"pictures": dict.fromkeys(content["data"]["runs"]["run"], padded)}))
    with shown(browser, page) as tab:
        session = tab.context.new_cdp_session(tab)
        # Time of the page's own thread: other work of the machine does not count.
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = task_seconds(session)
        tab.reload()
        assert len(ranked(tab)) == 500
        assert 0.05 < task_seconds(session) - before < 2
