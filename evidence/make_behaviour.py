"""Score codes of known faults by every metric: evidence/behaviour.json and evidence/stressed.json, which pages show.

python evidence/make_behaviour.py             some minutes on one core
python evidence/make_behaviour.py mcc r2      these anew, the others as they are
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unbraid import score, stress
from unbraid.metrics import LABEL_FREE, MEASURES, METRICS, udr
from unbraid.scoring.scored import Scored
from unbraid.scoring.stress import scored_each
from unbraid.scoring.synthetic_codes import REPEATS, SITUATIONS, SPACE, Codes, grid_case

FILE = Path(__file__).parent / "behaviour.json"
STRESSED = Path(__file__).parent / "stressed.json"
MODELS = 4  # that udr compares


def scores_of(make: Codes, names: Sequence[str]) -> dict[str, float | None]:
    """Headline of these metrics; None where one has no meaning."""
    case = grid_case(make)(np.random.default_rng(0))
    chosen = {name: METRICS[name] for name in names if name in METRICS}
    found: dict[str, float | None] = {
        name: round(scored.headline, 3) if isinstance(scored, Scored) else None
        for name, scored in scored_each(case, chosen)
    }
    if "udr" in names:
        # Siblings differ as trained models do: in the order and sign of their codes, and in whatever is random.
        siblings, factors = [], np.tile(SPACE.grid(), (REPEATS, 1))
        for seed in range(MODELS):
            rng = np.random.default_rng(seed)
            own = make(factors, rng)
            siblings.append((own * rng.choice([-1, 1], own.shape[1]))[:, rng.permutation(own.shape[1])])
        found["udr"] = round(float(udr(siblings).scores.mean()), 3)
    if "d_lsbd" in names:
        # Rows that repeat a cell have no symmetry to speak of: each cell once.
        once = score(make(SPACE.grid(), np.random.default_rng(0)), SPACE.grid(), kinds=SPACE.kinds, metrics="d_lsbd")
        found["d_lsbd"] = round(once.scored["d_lsbd"].headline, 3)
    return found


def stressed(names: Sequence[str]) -> dict[str, list[dict[str, object]]]:
    """What `unbraid stress` says of each value of these metrics that claims anything."""
    claiming = [name for name in names if name in METRICS and METRICS[name].claims]
    found: dict[str, list[dict[str, object]]] = {name: [] for name in claiming}
    for each in stress(*claiming) if claiming else ():
        failed = list(dict.fromkeys(check.situation for check in each.failed))
        judged = each.n_passed + len(each.failed)
        told = {"value": each.value, "claims": each.claims, "passed": each.n_passed, "judged": judged, "failed": failed}
        found[each.metric].append(told)
    return found


def main() -> None:
    """Write the files."""
    names = sys.argv[1:] or list({**METRICS, **LABEL_FREE})
    kept = json.loads(FILE.read_text(encoding="utf-8")) if sys.argv[1:] else dict.fromkeys(SITUATIONS, {})
    table = {}
    for situation, make in SITUATIONS.items():
        known = kept[situation] | scores_of(make, names)
        table[situation] = {name: known[name] for name in MEASURES if name in known}
    FILE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    for name in next(iter(table.values())):
        print(f"{name:<20}", *(f"{'-' if (v := row[name]) is None else format(v, '.2f'):>7}" for row in table.values()))
    told = json.loads(STRESSED.read_text(encoding="utf-8")) if sys.argv[1:] and STRESSED.is_file() else {}
    told |= stressed(names)
    ordered = {name: told[name] for name in METRICS if name in told}
    STRESSED.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
