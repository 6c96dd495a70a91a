"""The tables of docs/ranking.md say what evidence/benchmarks/selection.json holds, on numbers written down here."""

import json
from pathlib import Path

import pytest

FIRST = "UDR, all to all, penalty .1"
DATASETS = ("udr-2020-laptop", "udr-2020-rooms-laptop", "selection-cars-laptop", "selection-teapot-laptop")
MEASURES = ("mig.score", "dci_lasso.disentanglement", "sap.score", "modularity.score", "factor_vae_score.score")


def rule(shares: tuple[float, ...], mean: float, above: list[float]) -> dict[str, object]:
    datasets = {name: {"share": share} for name, share in zip(DATASETS, shares, strict=True)}
    return {"datasets": datasets, "share": mean, "above_today": above}


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages import selection

    spearman = {
        sign: {measure: [number, number - 0.1, number + 0.1] for measure in MEASURES}
        for sign, number in ((FIRST, 0.25), ("ELBO", -0.05))
    }
    content = {
        "rules": {
            FIRST: rule((0.63, 0.46, 0.5, 0.54), 0.53, [0.0, 0.0, 0.0]),
            "ELBO": rule((0.71, 0.5, 0.42, 1.0), 0.66, [0.13, -0.004, 0.2]),
        },
        "datasets": {name: {"models": 100 + place, "spearman": spearman} for place, name in enumerate(DATASETS)},
    }
    (tmp_path / "selection.json").write_text(json.dumps(content))
    monkeypatch.setattr(selection, "FILE", tmp_path / "selection.json")


def cells(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.strip().splitlines()]


@pytest.mark.usefixtures("measured")
def test_a_rule_has_its_share_on_each_dataset_and_how_far_it_is_above_todays() -> None:
    from pages import selection

    head, _, first, elbo = cells(selection.picks())
    assert head == ["picked by", "sprites", "rooms", "cars", "teapots", "mean", "above the first"]
    assert first == [FIRST, ".63", ".46", ".50", ".54", ".53", ""]
    assert elbo == ["ELBO", ".71", ".50", ".42", "1.00", ".66", ".13 [.00, .20]"]


@pytest.mark.usefixtures("measured")
def test_correlations_stand_with_their_ends_beside_the_measure() -> None:
    from pages import selection

    head, _, *rows = cells(selection.correlations())
    assert head[2:] == ["MIG", "DCI disentanglement", "SAP", "modularity", "FactorVAE score"]
    assert [row[:2] for row in rows[:3]] == [
        ["sprites, 100 models", "UDR"],
        ["sprites, 100 models", "ELBO"],
        ["rooms, 101 models", "UDR"],
    ]
    assert set(rows[0][2:]) == {".25 [.15, .35]"}
    assert set(rows[1][2:]) == {"−.05 [−.15, .05]"}
