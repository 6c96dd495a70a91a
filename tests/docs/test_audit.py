"""The audit of other packages: its page holds what the benchmark found, and reproductions that fit in five lines."""

import json
import re
from pathlib import Path

from packaging.version import Version

from unbraid.scoring.stress import CLAIMS
from unbraid.scoring.synthetic_codes import CASES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
FOUND = json.loads((ROOT / "evidence" / "benchmarks" / "audit.json").read_text(encoding="utf-8"))


def test_verdicts_are_of_cases_that_there_are() -> None:
    for package, told in FOUND.items():
        assert f"| {package} {told['version']} | claim |" in PAGE
        for each in told["metrics"]:
            assert f"`{each['name']}`" in PAGE
            assert set(each["failed"]) <= set(CASES)
            assert set(each["claims"]) <= set(CLAIMS)
            assert 0 < each["passed"] <= each["judged"] <= each["passed"] + len(each["failed"]) + 1


def test_reproductions_are_short_and_of_the_version_that_was_judged_or_a_later_one() -> None:
    blocks = [block for block in re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL) if "pip install" in block]
    assert len(blocks) >= len(FOUND)
    for block in blocks:
        first, *lines = block.splitlines()
        package, _, number = first.removeprefix("# pip install ").partition("==")
        assert Version(FOUND[package]["version"]) <= Version(number)
        assert len(lines) <= 5
        compile("\n".join(lines), "audit.md", "exec")
