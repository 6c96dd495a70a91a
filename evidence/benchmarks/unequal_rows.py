"""How often `unbraid compare` calls one of two equal models better that have unequal numbers of rows.

    python evidence/benchmarks/unequal_rows.py --samples 20             a piece of it
    python evidence/benchmarks/unequal_rows.py --keep found.jsonl       200 comparisons of each source and sizes: half an hour
    python evidence/benchmarks/unequal_rows.py --power                  how often a true difference is found, by sizes
    python evidence/benchmarks/unequal_rows.py --whole                  what it would be if all rows were compared at once

Of tests at .05 as many as 5 in 100 may find a difference between equal models, and as many as 5 in 100 comparisons any
at all after the correction (Holm). Two models are samples of one source (see `interval_coverage.py`), or, for the
source "example", rows of the shipped codes that no two of them share: 10,000 in all, so that the larger of
1,000 and 10,000 has 9,000. With --keep every comparison is written as one line at once, and an interrupted run
goes on where it stopped. Prints a table, in Markdown.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from interval_coverage import SOURCES, noisy  # fixes the number of threads as well

from unbraid import Representation, compare
from unbraid.scoring import equal_rows

METRICS = ("mig", "med", "jemmig", "snc", "sap", "dci_lasso", "mcc", "modularity")
SIZES = ((300, 3000), (1000, 10_000), (500, 700))
SIGNIFICANT = 0.05
MORE_NOISE = {300: 0.1, 1000: 0.07, 500: 0.1}  # in the codes of the worse model, by the fewer rows


def equal_models(source: str, sizes: tuple[int, int], rng: np.random.Generator) -> list[Representation]:
    if source != "example":
        return [SOURCES[source](n_rows, rng) for n_rows in sizes]
    example = Representation.example()
    order = rng.permutation(len(example))[: sum(sizes)]
    return [example.keep_rows(order[: sizes[0]]), example.keep_rows(order[sizes[0] :])]


def unequal_models(sizes: tuple[int, int], more: float, rng: np.random.Generator) -> list[Representation]:
    """The second of noisier codes."""
    better, worse = (noisy(n_rows, rng) for n_rows in sizes)
    return [better, replace(worse, codes=worse.codes + more * rng.standard_normal(worse.codes.shape))]


def measure(
    kind: str, source: str, sizes: tuple[int, int], more: float, done: int, metrics: list[str], parts: int | None
) -> dict[str, Any]:
    """One comparison: p by metric, and half of the interval of the difference."""
    rng = np.random.default_rng([done, *sizes])
    models = equal_models(source, sizes, rng) if kind == "equal" else unequal_models(sizes, more, rng)
    started = time.process_time()
    given = {"first": models[0], "second": models[1]}
    found = compare(given, metrics=metrics, confidence=(0.95, parts), paired=False).differences
    return {
        "kind": kind, "source": source, "rows": list(sizes), "done": done, "parts": parts,
        "seconds": time.process_time() - started, "p": {each.metric: each.p for each in found},
        "half_width": {each.metric: (each.high - each.low) / 2 for each in found},
    }  # fmt: skip


def cases(
    power: bool, sources: list[str], chosen: list[tuple[int, int]]
) -> Iterator[tuple[str, str, tuple[int, int], float]]:
    for few, many in chosen:
        if power:
            for sizes in ((few, few), (few, many), (many, many)):
                yield f"unequal {few}", "noisy", sizes, MORE_NOISE[few]
        else:
            yield from (("equal", source, (few, many), 0.0) for source in sources)


def table(found: list[dict[str, Any]]) -> str:
    """In Markdown: percent of comparisons with p <= .05 by metric, and with any winner at all once corrected."""
    rows = [
        f"| kind | source | rows | comparisons | {' | '.join(f'`{name}`' for name in METRICS)} | any (Holm) |",
        "| --- | --- | --- | ---: |" + " ---: |" * (len(METRICS) + 1),
    ]
    groups: dict[tuple[str, str, int, int], list[dict[str, Any]]] = {}
    for each in found:
        groups.setdefault((each["kind"], each["source"], *each["rows"]), []).append(each)
    for (kind, source, few, many), own in groups.items():
        cells = []
        for metric in METRICS:
            known = [each["p"][metric] <= SIGNIFICANT for each in own if metric in each["p"]]
            cells.append(f"{100 * np.mean(known):.1f}" if known else "-")
        any_winner = 100 * np.mean([min(each["p"].values()) * len(each["p"]) <= SIGNIFICANT for each in own])
        rows.append(f"| {kind} | {source} | {few:,} / {many:,} | {len(own)} | {' | '.join(cells)} | {any_winner:.1f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--parts", type=int, default=20, help="of each model; 0: as many as the table of metrics says")
    parser.add_argument("--metrics", default=",".join(METRICS))
    parser.add_argument("--sources", default="noisy,uneven,trained,example")
    parser.add_argument("--rows", default=",".join(f"{few}/{many}" for few, many in SIZES))
    parser.add_argument("--power", action="store_true", help="one model is noisier")
    parser.add_argument("--whole", action="store_true", help="all rows of both at once")
    parser.add_argument("--keep", type=Path, help="a file of lines to go on from")
    given = parser.parse_args()
    if given.whole:
        equal_rows.AS_MANY = np.inf
    sizes = [(int(few), int(many)) for few, many in (each.split("/") for each in given.rows.split(","))]
    lines = given.keep.read_text(encoding="utf-8").splitlines() if given.keep and given.keep.exists() else []
    found = [json.loads(line) for line in lines]
    known = {(each["kind"], each["source"], *each["rows"], each["done"]) for each in found}
    for done in range(given.samples):
        for kind, source, its_sizes, more in cases(given.power, given.sources.split(","), sizes):
            if source == "example":
                its_sizes = (its_sizes[0], min(its_sizes[1], len(Representation.example()) - its_sizes[0]))
            if (kind, source, *its_sizes, done) in known:
                continue
            found.append(measure(kind, source, its_sizes, more, done, given.metrics.split(","), given.parts or None))
            if given.keep:
                with given.keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
