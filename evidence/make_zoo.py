"""Make the zoo of a release from studies, and choose anew which models of it lie inside the package.

    python evidence/make_zoo.py reproduced/udr-2020-laptop reproduced/dci-2018-laptop

writes zoo/ beside this repository's README, and replaces src/unbraid/zoo/packaged. Studies that are appended later add
models and leave the names of the others as they are.
"""

import sys
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from zoo_building import build

from unbraid import zoo

ROOT = Path(__file__).parents[1]
WHOLE, PACKAGED = ROOT / "zoo", ROOT / "src" / "unbraid" / "zoo" / "packaged"
INSIDE, ROWS_INSIDE = 24, 3_000  # models and rows
LEAST = 8  # models of a dataset; correlations over fewer tell little, and the mean over datasets no more than they
UNTRAINED = 4  # models of each dataset


def main(studies: list[str]) -> None:
    if not studies:
        raise SystemExit("name the folders of studies, such as reproduced/udr-2020-laptop")
    for path in WHOLE.glob("*.npz"):
        path.unlink()
    print(*build(studies, WHOLE, untrained=UNTRAINED, progress=said), sep="\n")
    chosen = inside(zoo.list(WHOLE))
    for path in PACKAGED.glob("*.npz"):
        path.unlink()
    written = build(
        studies, PACKAGED, rows=ROWS_INSIDE, untrained=UNTRAINED, keep=lambda name: name in chosen, progress=said
    )
    print(*written, sep="\n")
    print(rounding())


def inside(models) -> set[str]:
    """As many models of each of the datasets that have most settings: one of each defect, then families in turn,
    those first that no other dataset has there.

    What a dataset leaves, those of more settings take. Of two datasets of one name only the first is taken.
    """
    models = models[~models["dataset"].str.contains(r"-[0-9a-f]{4}$")]
    settings = models.groupby("dataset", sort=False).apply(lambda own: own.groupby(["family", "setting"]).ngroups)
    most = settings[settings >= LEAST].sort_values(ascending=False, kind="stable")
    datasets = list(most.index[: INSIDE // LEAST])[::-1]
    chosen: set[str] = set()
    used: Counter[tuple[str, str]] = Counter()  # how often a setting is there already, of other datasets
    for place, dataset in enumerate(datasets):
        every = models[models["dataset"] == dataset]
        quota = (INSIDE - len(chosen)) // (len(datasets) - place)
        kinds = dict.fromkeys(defect for each in every["defects"] for defect in each)
        names = [next(name for name, has in every["defects"].items() if kind in has) for kind in kinds]
        own = every.drop_duplicates(["family", "setting"])
        in_turn = zip_longest(*(outermost(list(rows.index)) for _, rows in own.groupby("family", sort=False)))
        more = [name for turn in in_turn for name in turn if name is not None]
        names += sorted(more, key=lambda name: used[tuple(models.loc[name, ["family", "setting"]])])
        taken = list(dict.fromkeys(names))[:quota]
        used.update(map(tuple, models.loc[taken, ["family", "setting"]].to_numpy()))
        chosen |= {*taken}
    return chosen


def outermost(settings: list[str]) -> list[str]:
    """The first, the last, the middle one, then those between: the weakest and the strongest pressure come first."""
    last = len(settings) - 1
    places = [0, last, last // 2, last // 4, (3 * last) // 4, *range(last + 1)]
    return [settings[place] for place in dict.fromkeys(places)]


def rounding() -> str:
    """How far float16 moved the scores: those that studies have of the same rows, by the same version."""
    models = zoo.list(WHOLE)
    said = []
    for column in models.columns[models.columns.str.startswith("study.")]:
        metric = column.removeprefix("study.").rpartition(".")[0]
        if metric in models.columns and (apart := (models[column] - models[metric]).abs().dropna()).size:
            above = int((apart > 1e-3).sum())
            said.append(f"{metric}: at most {apart.max():.1e}, above .001 in {above} of {apart.size} models")
    return "\n".join(said)


def said(name: str, done: int, total: int) -> None:
    if done % 20 == 0:
        print(f"{done} of {total}: {name}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
