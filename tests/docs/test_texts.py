"""What the pages claim is so: their code runs, and their numbers are those that are measured."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

from tests.docs.conftest import ROOT
from unbraid import score
from unbraid.cli.app import app
from unbraid.families import FAMILIES
from unbraid.metrics import BLOCKED, MEASURES, METRICS, RECONSTRUCTED
from unbraid.scoring.score import choose

TABLE = json.loads((ROOT / "evidence" / "behaviour.json").read_text(encoding="utf-8"))
COMMANDS: Any = typer.main.get_command(app)
QUICK = ["mig", "med", "sap", "modularity", "irs", "factor_leakage", "snc"]  # a second for all situations


def blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.lengthy
@pytest.mark.parametrize("page", ["quickstart", "extending", "scoring", "how-sure", "paper", "which-metric", "sharing"])
def test_the_code_of_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for block in blocks(page):
        exec(compile(block, f"{page}.md", "exec"), names)
    if page == "quickstart":
        assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["metrics"]["mig"]
    elif page == "sharing":
        assert "type: mig.score" in (tmp_path / "README.md").read_text(encoding="utf-8")
    elif page == "which-metric":
        assert (len(names["failed"]), names["failed"][:2]) == (17, ["many codes, few rows, noise", "constant"])
    elif page == "scoring":
        assert list(names["card"].scored) == ["mig", "snc", "modularity"]
        assert (tmp_path / "codes.npz").is_file()
    elif page == "how-sure":
        assert names["interval"].low < names["card"]["mig"].score < names["interval"].high
    elif page == "paper":
        assert (tmp_path / "codes.pdf").read_bytes().startswith(b"%PDF")
        assert "mig" in (tmp_path / "scores.csv").read_text(encoding="utf-8")
    else:
        check_family(names["SPARSE_VAE"])
        assert names["spread_of_best"](np.eye(5)[:, :2], np.eye(5)[:, :2]) == pytest.approx(1.0)
        assert len(names["blocks"]) == 24


def check_family(family) -> None:
    """The row of the page trains: its loss falls."""
    import torch

    from unbraid.families.building import Member, build_member, structural_settings

    member = Member(0, {name: each.default for name, each in family.hyperparameters.items()} | {"network": "dense"})
    settings = structural_settings(family, [member])
    modules = build_member(family, (8, 8, 1), settings, 0)
    torch.manual_seed(0)
    batch = {"images": torch.rand(16, 1, 8, 8).round(), "noise": torch.zeros(16, settings["latents"])}
    context = type("Context", (), {"settings": settings, "n_images": 16, "batch_size": 16, "steps": 20})
    optimiser = torch.optim.Adam(modules.parameters(), 1e-3)
    losses = []
    for step in range(20):
        loss, logs, _ = family.optimizer_steps[0].loss(modules, batch, member.hyper, step, context)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert set(logs) == {"reconstruction", "kl", "penalty"}
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("situation", TABLE)
def test_the_table_of_known_faults_is_what_metrics_say(situation: str) -> None:
    from unbraid.scoring.synthetic_codes import REPEATS, SITUATIONS, SPACE

    factors = np.tile(SPACE.grid(), (REPEATS, 1))
    codes = SITUATIONS[situation](factors, np.random.default_rng(0))
    card = score(codes, factors, kinds=SPACE.kinds, metrics=QUICK)
    for name in QUICK:
        assert card.scored[name].headline == pytest.approx(TABLE[situation][name], abs=0.002), name


def test_the_table_has_every_metric_and_every_situation_has_words() -> None:
    from pages.metrics import SITUATIONS

    from unbraid.scoring.synthetic_codes import SITUATIONS as MADE

    assert list(TABLE) == list(MADE) == list(SITUATIONS)
    assert all(set(row) == set(MEASURES) - set(RECONSTRUCTED) for row in TABLE.values())
    stressed = json.loads((ROOT / "evidence" / "stressed.json").read_text(encoding="utf-8"))
    assert {name: [each["value"] for each in values] for name, values in stressed.items()} == {
        name: list(row.claims) for name, row in MEASURES.items() if row.claims
    }


# What docs/which-metric.md says of its table.
def test_gaps_punish_copies_and_nothing_else_does() -> None:
    twice = TABLE["twice"]
    assert all(twice[name] < 0.05 for name in ("mig", "mig_exact", "sap", "nk"))
    assert all(twice[name] > 0.99 for name in ("snc", "dci_lasso", "dci_boosted", "modularity", "irs"))
    assert TABLE["circle"]["mig"] == pytest.approx(0.75, abs=0.005)


def test_a_lost_factor_is_invisible_to_some() -> None:
    lost = TABLE["one lost"]
    assert all(
        lost[name] > 0.99 for name in ("modularity", "irs", "med", "mig_sup", "infomec", "beta_vae_score", "udr")
    )
    assert all(lost[name] > 0.98 for name in ("dci_lasso",))
    assert all(lost[name] < 0.8 for name in ("dci_forest", "dci_boosted"))
    assert all(lost[name] < 0.8 for name in ("mig", "snc", "nk", "mlp_accuracy"))


def test_two_factors_in_one_code_pass_mig_and_not_snc() -> None:
    assert TABLE["two in one"]["mig"] > 0.99
    assert TABLE["two in one"]["snc"] < 0.8


def test_what_only_two_codes_tell_is_seen_by_trees() -> None:
    split = TABLE["split"]
    assert all(split[name] < 0.02 for name in ("mig", "sap", "snc"))
    assert split["dci_boosted"] == pytest.approx(0.90, abs=0.005)
    assert split["nk"] == pytest.approx(0.98, abs=0.02)  # a trained head: seeds differ by .01


def test_a_rotation_is_seen_by_those_that_claim_axes() -> None:
    rotated = TABLE["rotated"]
    assert all(rotated[name] < 0.65 for name in ("mig", "dci_lasso", "dci_forest", "dci_boosted", "med", "snc", "sap"))
    assert all(rotated[name] > 0.97 for name in ("beta_vae_score", "factor_vae_score", "modularity", "mlp_accuracy"))
    assert all(rotated[name] == pytest.approx(TABLE["perfect"][name], abs=0.01) for name in ("d_lsbd", "explicitness"))


def test_noise_is_not_nothing_to_some() -> None:
    assert TABLE["noise"]["modularity"] == pytest.approx(0.76, abs=0.005)
    assert TABLE["noise"]["irs"] == pytest.approx(0.35, abs=0.005)
    assert TABLE["noise"]["infomec"] == pytest.approx(0.66, abs=0.005)


def prose(text: str) -> list[str]:
    """The lines of a page without tables, pictures, code, generated parts, and words that cannot be broken."""
    if "<!-- Generated by evidence/generate.py" in text:
        return []
    text = re.sub(r"<!-- (\w+): generated by .*?<!-- end of \1 -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^( *)(```|:::).*?^\1\2$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\s*`[^`\n]+`\S*$", "", text, flags=re.MULTILINE)  # one piece of code, and nothing else
    return [line for line in text.splitlines() if not re.match(r"\s*(\||!\[|#|<)", line) and len(line.split()) > 2]


def test_every_family_has_a_formula_on_its_page() -> None:
    assert not [name for name, row in FAMILIES.items() if not all(row.formula[:1])]


def test_the_changelog_names_the_version_of_every_metric_above_the_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("### Values changed")[1]
    listed = {
        name: int(version)
        for version, names in re.findall(r"^- version (\d+): (.*?)[;.]$", text, re.DOTALL | re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    rows = {**METRICS, **BLOCKED}
    assert listed == {name: metric.version for name, metric in rows.items() if metric.version > 1}


PAGES = [
    ROOT / name
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "evidence/benchmarks/README.md")
]


MADE = (ROOT / ".gitignore").read_text(encoding="utf-8").split()  # among others, pages that `make docs` writes
PAGES += [page for page in sorted((ROOT / "docs").glob("*.md")) if f"/docs/{page.name}" not in MADE]
PAGES += sorted((ROOT / "docs" / "reproductions").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_line_of_prose_has_at_most_100_characters(page: Path) -> None:
    assert [line for line in prose(page.read_text(encoding="utf-8")) if len(line) > 100] == []


@cache
def anchors(page: Path) -> set[str]:
    """What a link into this page can name: its headings, as GitHub and MyST write them, and its own ids."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each).strip().lower() for each in headings]
    return {re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in plain} | set(re.findall(r'id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_of_the_repository_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^]]+\]: (\S+)", text, flags=re.MULTILINE):
        if not link.startswith(("http", "mailto:")):
            path, _, anchor = link.partition("#")
            to = (page.parent / path).resolve() if path else page
            assert to.exists(), link
            assert not anchor or to.suffix != ".md" or anchor in anchors(to), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_the_options_that_a_page_gives_them(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^ *(?:srun )?unbraid ([a-z].*)$", "\n".join(blocks_of(text, "sh|bash")), flags=re.MULTILINE)
    if page.name != "CHANGELOG.md":  # which names options that were removed
        lines += re.findall(r"`unbraid ([a-z][^`]*)`", text.replace("\n", " "))
    for line in lines:
        node, words = COMMANDS, re.sub(r" # .*", "", line).split()
        while words and words[0] in getattr(node, "commands", {}):
            node = node.commands[words.pop(0)]
        assert node is not COMMANDS, line
        known = {each for option in node.params for each in (*option.opts, *option.secondary_opts)} | {"--help"}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_metrics_that_a_command_of_a_page_names_can_be_chosen(page: Path) -> None:
    commands = "\n".join(blocks_of(page.read_text(encoding="utf-8"), "sh|bash"))
    for asked in re.findall(r'--metrics (?:"([^"]+)"|(\S+))', commands):
        choose([each for each in re.split(r",(?![^(]*\))", "".join(asked)) if ":" not in each] or "mig")


def blocks_of(text: str, languages: str) -> list[str]:
    return re.findall(rf"^ *```(?:{languages})\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)
