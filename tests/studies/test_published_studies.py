"""The studies that come with the sources."""

from pathlib import Path

import pytest

from tests.studies.study_examples import parse
from tests.studies.test_schema import AROUND
from unbraid.studies.expand import expand

STUDIES = Path(__file__).parents[2] / "evidence" / "studies"
CLAIMS = STUDIES / "claims"  # what papers claim of them, which is no study
FILES = sorted(path for path in STUDIES.rglob("*.yaml") if CLAIMS not in path.parents)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STUDIES)))
def test_their_families_and_settings_exist(path: Path) -> None:
    runs = expand(parse(path.read_text(encoding="utf-8"), str(path)), AROUND)
    assert len({run.id for run in runs}) == len(runs) > 0
