"""A study served live, as a reader meets it."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.processes import forked
from tests.report.browser import shown
from unbraid.explore.server import serve
from unbraid.explore.site import RunSite, StudySite, open_site
from unbraid.studies.page import page_content
from unbraid.studies.study import Study

YAML = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families:
  - {name: beta_vae, beta: [1, 4], network: dense, latents: 3, steps: 2}
  - {name: pca, latents: 3}
batch_size: 8
precision: float32
device: cpu
metrics: [mig]
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    (folder / "small.yaml").write_text(YAML)
    Study.load(folder / "small.yaml", out=folder / "study").run(processes=0)
    return folder / "study"


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "study"))


@pytest.fixture
def site(folder: Path) -> StudySite:
    return StudySite(folder)


@pytest.fixture
def address(site: StudySite) -> Iterator[str]:
    with serve("127.0.0.1", 0, site.get, site.post) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Page]:
    with shown(browser, address, host=address.split("/")[2]) as tab:
        tab.set_default_timeout(120_000)  # milliseconds; the page of a run is made while one waits
        yield tab


def run_ids(folder: Path, family: str = "beta_vae") -> list[str]:
    return [run.id for run in Study.load(folder).runs() if run.family == family]


@pytest.mark.lengthy
def test_a_run_is_scored_on_demand_and_keeps_its_scores(tab: Page, folder: Path) -> None:
    """And a metric without meaning for another run says why."""
    tab.locator(f"[data-run='{run_ids(folder, 'pca')[0]}']").click()
    tab.get_by_label("Metric").select_option("elbo_terms")
    tab.get_by_role("button", name="Score").click()
    tab.get_by_text("elbo_terms: not defined here: ").wait_for()
    tab.keyboard.press("Escape")

    run = run_ids(folder)[0]
    tab.locator(f"[data-run='{run}']").click()
    expect(tab.locator("#run .strip img")).to_have_count(1, timeout=120_000)
    choice = tab.get_by_label("Metric")
    assert "mig" not in choice.locator("option").all_inner_texts()
    choice.select_option("modularity")
    tab.get_by_role("button", name="Score").click()
    tab.locator("#run dt", has_text="modularity").wait_for()
    values = json.loads((folder / "runs" / run / "scores.json").read_text())["metrics"]
    assert set(values) == {"mig", "modularity"}
    shown_ = tab.locator("#run dt", has_text="modularity").locator("xpath=following-sibling::dd[1]").inner_text()
    assert shown_ == f"{values['modularity']['values']['score']:.3f}"
    assert tab.locator("[data-key='modularity.score']").count() == 0  # a column one may now choose
    expect(tab.locator("#ranking-columns input[value='modularity.score']")).to_have_count(1, timeout=120_000)


def test_what_ends_appears_by_itself(tab: Page, folder: Path) -> None:
    run = run_ids(folder)[0]
    tab.locator("#filters").get_by_label("Family").select_option("beta_vae")
    expect(tab.locator(".picture", has_text="…")).to_have_count(0, timeout=120_000)  # asked for while the run is there
    kept = folder / "runs" / run
    kept.rename(folder / "away")
    look(tab)
    row = tab.locator("#ranking-body tr", has=tab.locator(f"[data-run='{run}']"))
    assert row.locator(".k-state").inner_text() == "waiting"
    assert tab.locator("#news").inner_text() == "1 run is not finished; what ends appears here by itself."
    (folder / "away").rename(kept)
    look(tab)
    assert row.locator(".k-state").inner_text() == "finished"
    assert tab.locator("#filters").get_by_label("Family").input_value() == "beta_vae"
    assert tab.locator("#ranking-body tr").count() == 2


def look(tab: Page) -> None:
    """What the page does every few seconds."""
    tab.evaluate("look()")


@pytest.mark.lengthy
def test_every_run_has_its_page_where_it_is_scored_too(tab: Page, folder: Path) -> None:
    run = run_ids(folder)[0]
    tab.locator(f"[data-run='{run}']").click()
    tab.get_by_role("link", name="Page of the run").click()
    tab.locator("#live[data-ready='yes']").wait_for()
    assert tab.locator("#live canvas").count() == 1
    tab.get_by_label("Score by").select_option("modularity")
    with tab.expect_navigation():
        tab.get_by_role("button", name="Score", exact=True).click()
    assert tab.locator("#score-modularity").count() == 1
    assert "modularity" not in tab.get_by_label("Score by").inner_text()
    tab.get_by_role("link", name="Back to the study").click()
    assert tab.locator("h1").inner_text() == "small"


@pytest.mark.slow
def test_two_runs_stand_beside_each_other(tab: Page, folder: Path) -> None:
    tab.locator(f"[data-run='{run_ids(folder)[1]}']").click()
    tab.get_by_role("link", name="Beside ").click()
    tab.locator("#live[data-ready='yes']").wait_for()
    assert tab.locator("#live canvas").count() == 2


def test_files_are_shown_as_text_or_saved_but_never_run(address: str, folder: Path) -> None:
    (folder / "added" / "<b>mine").mkdir(parents=True)
    (folder / "page.html").write_text("<script>alert(1)</script>")
    run = run_ids(folder)[0]
    with urlopen(f"{address}files/runs/{run}/config.json") as reply:
        assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert json.loads(reply.read())["family"] == "beta_vae"
    with urlopen(f"{address}files/page.html") as reply:
        assert reply.headers["Content-Type"] == "application/octet-stream"
        assert reply.headers["Content-Disposition"].startswith("attachment")
    with urlopen(f"{address}files/added") as reply:
        assert reply.url == f"{address}files/added/"
        listed = reply.read().decode()
    assert "&lt;b&gt;mine/" in listed
    assert 'href="./%3Cb%3Emine/"' in listed
    for path in ("files/.lock", "files/../small.yaml", "files/%2e%2e/small.yaml", "files/runs/%2e%2e%2f%2e%2e", "x"):
        assert refusal(address + path) == 404


def test_files_are_sent_piece_by_piece_and_pipes_not_waited_for(address: str, folder: Path) -> None:
    with (folder / "large.npz").open("wb") as file:
        file.write(b"begin")
        file.truncate(1 << 36)  # of which nothing is on the disk
    with urlopen(Request(f"{address}files/large.npz", method="HEAD"), timeout=60) as reply:
        assert int(reply.headers["Content-Length"]) == 1 << 36
    with urlopen(f"{address}files/large.npz", timeout=60) as reply:
        assert reply.read(5) == b"begin"
    os.mkfifo(folder / "pipe.json")
    assert refusal(f"{address}files/pipe.json") == 404


def test_the_page_of_all_runs_is_made_once(address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def counted(*arguments: Any, **options: Any) -> dict[str, Any]:
        made.append(folder)
        return page_content(*arguments, **options)

    monkeypatch.setattr("unbraid.explore.site.page_content", counted)
    pages = [urlopen(address).read() for _ in range(2)]
    assert pages[0] == pages[1]
    assert len(made) == 1
    run = folder / "runs" / run_ids(folder)[0]
    run.rename(folder / run.name)
    assert urlopen(address).read() != pages[0]
    assert len(made) == 2


def test_twenty_readers_have_one_page_made_and_wait_for_no_other(
    site: StudySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(*arguments: Any, **options: Any) -> dict[str, Any]:
        made.append(1)
        return page_content(*arguments, **options)

    monkeypatch.setattr("unbraid.explore.site.page_content", counted)
    with ThreadPoolExecutor(20) as readers:
        pages = list(readers.map(lambda _: site.get("/").body, range(20)))
    assert (len({id(page) for page in pages}), made) == (1, [1])
    with site._busy:  # somebody has the page of a run made
        assert site.get("/").body is pages[0]


def test_runs_that_lie_elsewhere_are_not_served(address: str, folder: Path, tmp_path: Path) -> None:
    run = run_ids(folder)[0]
    (folder / "runs" / run).rename(tmp_path / "elsewhere")
    (folder / "runs" / run).symlink_to(tmp_path / "elsewhere")
    for path in (f"run/{run}", f"picture/{run}", f"files/runs/{run}/config.json"):
        assert refusal(address + path) == 404


@pytest.mark.parametrize(
    ("run", "metric", "status"),
    [("{run}", "udr", 400), ("{run}", "my_lab:metric", 400), ("../study", "mig", 404), ("none", "mig", 404)],
)
def test_only_known_metrics_of_runs_of_the_study_are_scored(
    address: str, folder: Path, run: str, metric: str, status: int
) -> None:
    body = json.dumps({"run": run.format(run=run_ids(folder)[0]), "metric": metric}).encode()
    headers = {"Content-Type": "application/json", "Origin": address.rstrip("/")}
    assert refusal(Request(f"{address}score", body, headers)) == status


def refusal(address: str | Request) -> int:
    with pytest.raises(HTTPError) as caught, urlopen(address, timeout=60):
        pass
    caught.value.close()
    return caught.value.code


def test_the_data_come_again_only_when_they_changed(address: str, folder: Path) -> None:
    with urlopen(f"{address}data") as reply:
        tag = reply.headers["ETag"]
        assert json.loads(reply.read())["live"]["tag"] == tag
    assert refusal(Request(f"{address}data", headers={"If-None-Match": tag})) == 304
    (folder / "failed").mkdir(exist_ok=True)
    (folder / "failed" / "x.json").write_text("{}")
    with urlopen(Request(f"{address}data", headers={"If-None-Match": tag})) as reply:
        assert reply.headers["ETag"] != tag


def test_a_run_alone_is_served_too(folder: Path) -> None:
    run = folder / "runs" / run_ids(folder)[0]
    site = open_site(run)
    assert isinstance(site, RunSite)
    page = site.get("/").body
    assert isinstance(page, bytes)
    assert b"Live traversals" in page
    assert b"Back to the study" not in page
    site.post("/score", {"run": run.name, "metric": "modularity"})
    site.jobs.join()
    assert site.jobs.listed() == [{"run": run.name, "metric": "modularity", "state": "done", "reason": ""}]


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"neither a study \(no study.yaml\) nor a run \(no config.json\)"):
        open_site(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        open_site(tmp_path / "none")
    (tmp_path / "search").mkdir()
    (tmp_path / "plan.yaml").touch()
    (tmp_path / "search" / "study.yaml").touch()
    with pytest.raises(ValueError, match=f"is a folder of `unbraid fit`.*give {tmp_path / 'search'}$"):
        open_site(tmp_path)


def test_ctrl_c_ends_the_command_with_a_line(folder: Path) -> None:
    with forked("from unbraid.cli import main; main()", "explore", str(folder), "--port", "0") as process:
        assert process.stdout.readline().startswith(f"{folder} at http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        said, complaints = process.communicate()
    assert (said, complaints, process.returncode) == (f"\nstopped serving {folder}\n", "", 0)
