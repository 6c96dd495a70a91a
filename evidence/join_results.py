"""Put what was measured here beside what the papers report, in the external/ files of results/.

python evidence/join_results.py    after a study has run and its table was gathered by evidence/make_claims.py

Only settings whose runs have all ended, none of them of changed code, are taken, from the largest study that has them.
Where a number lies elsewhere than the paper's, what differs here stands beside it as the reason; no more is known of the
cause than that.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from make_claims import NOT_ENDED
from records.check import outside
from records.files import FOLDER, path_of, read, text_of
from records.measured import means
from records.schema import BESIDE, COMMIT, EXTERNAL, Results, apart, beside, named

from unbraid.files.json_records import check_record
from unbraid.files.whole_files import write_text

TABLES = FOLDER.parents[1] / "docs" / "reproductions" / "results"


class Join(NamedTuple):
    """Runs of a study that repeat a setting of a paper."""

    study: str  # here
    where: Mapping[str, Any]  # columns of its table
    model: str  # of the paper, as results/ names it
    file: str  # the paper's study
    setting: str  # as the paper's file has it


LSBD_MODELS = {
    "vae": "steps=30000",
    "beta_vae": "beta=5, steps=30000",
    "cci_vae": "beta=5, gamma=1000, c_max=15, iteration threshold 3500, steps=30000",
    "factor_vae": "gamma=1, 30000 epochs as table 3 prints it",
    "dip_vae_i": "lambda_od=1, lambda_d=10, steps=30000",
    "dip_vae_ii": "lambda_od=1, lambda_d=1, steps=30000",
    "ada_gvae": "beta=1, epochs=500",
    "ada_ml_vae": "beta=1, epochs=500",
    "quessard": "lambda=0.01, trajectories=3000",
}
DIFFERENT = {  # by the first words of a study's name
    "lsbd-square-64px": "Drawn here by the paper's description, and trained in bfloat16",
    "lsbd-arrow-64px": "Drawn here by the paper's description, and trained in bfloat16",
    "lsbd-square": "Drawn here, 16 x 16 pixels and 3 000 steps in place of 64 x 64 and the paper's longer training",
    "lsbd-arrow": "Drawn here, 16 x 16 pixels and 2 100 or 3 000 steps in place of 64 x 64 and the paper's longer training",
    "lsbd-airplane": "Drawn here, 32 x 32 pixels and 2 000 steps in place of 64 x 64 and the paper's longer training",
    "dci-2018": "Teapots rendered here, of 16 x 16 pixels, and dense networks, in place of the authors' of 64 x 64 "
    "and residual networks",
}


def joins() -> Iterator[Join]:
    """All of them, of one setting the largest study first; tables that are not there are left out later."""
    for images, scale in product(("square", "arrow", "airplane"), ("64px", "laptop", "traditional-laptop")):
        study = f"lsbd-{images}-{scale}"
        of_lsbd_vae = {"family": "lsbd_vae"} | ({"hyper.initialisation": "glorot"} if scale == "64px" else {})
        for pairs in (0, 256, 512, 768, 1024):
            of_pairs = of_lsbd_vae | {"hyper.supervision": "pairs", "hyper.pairs": pairs}
            yield Join(study, of_pairs, "lsbd-2022__lsbd_vae", images, f"pairs={pairs}")
        of_paths = of_lsbd_vae | {"hyper.supervision": "paths"}
        yield Join(study, of_paths, "lsbd-2022__lsbd_vae", images, "paths=50")
        for family, setting in LSBD_MODELS.items():
            at = {"family": family} | ({"hyper.beta": 5} if family == "beta_vae" else {})
            yield Join(study, at, f"lsbd-2022__{family}", images, setting)
    for study, file in (("dci-2018-16px", "teapot"), ("dci-2018-zero-shot-16px", "teapot-zero-shot")):
        yield Join(study, {"family": "pca"}, "dci-2018__pca", file, "")
        yield Join(study, {"family": "vae"}, "dci-2018__vae", file, "beta=1")
        yield Join(study, {"family": "beta_vae"}, "dci-2018__beta_vae", file, "beta=6")
        yield Join(study, {"family": "info_gan"}, "dci-2018__info_gan", file, "information_weight=6")


def measured_of(join: Join, content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What was measured of the numbers that the paper reports for this setting, by column."""
    runs = pd.read_csv(TABLES / f"{join.study}.csv")
    for column, value in join.where.items():
        runs = runs[runs[column] == value] if column in runs else runs[:0]
    if runs["state"].isin(NOT_ENDED).any():
        return {}
    runs = runs.query("state == 'finished'")
    reported = [score["metric"] for score in content["scores"] if score["setting"] == join.setting]
    columns = [name for name in reported if name in runs and runs[name].notna().any()]
    if runs.empty or not columns or runs["setting"].nunique() > 1:
        return {}
    if not runs["commit"].astype(str).str.fullmatch(COMMIT).all():
        print(f"{join.study}: left out, a run is of changed code, or of an unknown commit")
        return {}
    return means(runs, join.study, columns)


def joined(content: dict[str, Any], setting: str, measured: Mapping[str, Any], reason: str, today: date) -> int:
    """Put measured numbers beside the reported ones of a setting, in place; how many are new or changed.

    Raises:
        ValueError: a number lies outside the range of its metric.
    """
    n_changed = 0
    for score in content["scores"]:
        if score["setting"] != setting or score["metric"] not in measured or "reported" not in score:
            continue
        number = dict(measured[score["metric"]])
        before = score.get("measured")
        if before is not None and "metric_version" not in before:  # recorded before versions were
            number.pop("metric_version", None)
        if before == number:
            continue
        n_changed += 1
        score["measured"] = measured[score["metric"]]
        for fault in outside(score):
            raise ValueError(f"{named(score)}: {fault}")
        score.pop("reason", None)
        if apart(score):
            score["reason"] = reason
    if n_changed:
        content["history"].append({"date": today.isoformat(), "reason": reason})
        if any(beside(score.get("measured", {})) for score in content["scores"]):
            content["schema"] = BESIDE
    return n_changed


def main() -> None:
    """Write the files that get a number."""
    done: set[tuple[Path, str]] = set()
    for join in joins():
        path = path_of(FOLDER, join.model, EXTERNAL, join.file)
        if not (TABLES / f"{join.study}.csv").is_file() or not path.is_file() or (path, join.setting) in done:
            continue
        content = read(path)
        measured = measured_of(join, content)
        if measured:
            done.add((path, join.setting))
        reason = f"{next(text for name, text in DIFFERENT.items() if join.study.startswith(name))}."
        n_changed = joined(content, join.setting, measured, reason, date.today())
        if n_changed:
            check_record(Results, content, path)
            write_text(path, text_of(content))
            print(f"{path.relative_to(FOLDER.parent)}, {join.setting}: {n_changed} new or changed")


if __name__ == "__main__":
    main()
