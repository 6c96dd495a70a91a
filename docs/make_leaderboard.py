"""Measure families on the suite of docs/leaderboard.md and record them in results/.

python docs/make_leaderboard.py [NAME ...]    all in an hour on two idle cores; by default those without a record

What is done is kept in bench/, so that the same command goes on where it was stopped.
"""

import sys
from datetime import date
from pathlib import Path

from pages.results import FOLDER

from unbraid.bench.encoder import bench_encoder
from unbraid.bench.leaderboard import standings
from unbraid.bench.record import check_whole, model_of, record
from unbraid.bench.suite import LAPTOP
from unbraid.families import FAMILIES
from unbraid.results.adding import added, write
from unbraid.results.files import read_all

WORK = Path(__file__).parents[1] / "bench"


def main(names: list[str]) -> None:
    """Measure these, or those that have no record of this version of the suite."""
    there = {each.model for each in standings(read_all(FOLDER), LAPTOP)}
    for name in names or [name for name in FAMILIES if model_of(name) not in there]:
        try:
            found = bench_encoder(name, suite=LAPTOP, work=WORK / name)
            if found.trial:
                raise ValueError("; ".join(found.trial))
            content = record(found, model_of(name), date.today())
            check_whole(content, name)
            where = content["model"], content["revision"], content["study"]
            plan = added(FOLDER, *where, content["scores"], today=date.today())
        except ValueError as reason:
            print(f"{name}: not recorded; {reason}", flush=True)
            continue
        write(plan)
        print(f"{plan.path}: {plan.n_new} new. {'; '.join(found.notes)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
