"""What surrounds the code agrees with it: workflows, Makefile, version, addresses."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from unbraid.base.version import VERSION

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# "on" is a boolean in YAML 1.1, so that the triggers stand under True.
JOBS: dict[str, Any] = {
    name: job for path in WORKFLOWS for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
}


def commands(name: str) -> list[str]:
    """The command lines of a job, one for each value of its matrix."""
    values = [(key, str(value)) for key, row in JOBS[name]["strategy"]["matrix"].items() for value in row]
    lines = [step["run"] for step in JOBS[name]["steps"] if "run" in step]
    return [line.replace(f"${{{{ matrix.{key} }}}}", value) for line in lines for key, value in values]


def test_workflows_make_what_the_makefile_has() -> None:
    made = {word for name in JOBS for line in commands(name) for word in re.findall(r"^make (\S+)", line)}
    assert made >= {"lint", "types", "test-all", "docs"}
    assert made <= TARGETS


def test_all_supported_versions_of_python_are_tested() -> None:
    versions = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if ":: Python :: 3" in text]
    assert JOBS["tests"]["strategy"]["matrix"]["python"] == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_folders_that_a_workflow_tests_are_there() -> None:
    paths = re.findall(r"tests/\S+", " ".join(commands("core")))
    assert paths
    assert all((ROOT / path).exists() for path in paths)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "RELEASING.md", "docs/extending.md"])
def test_targets_that_a_page_names_are_in_the_makefile(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"^\s*make ([a-z-]+)|`make ([a-z-]+)", text, flags=re.MULTILINE)) <= {
        pair for target in TARGETS for pair in ((target, ""), ("", target))
    }


def test_one_version_is_everywhere() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    entry = (ROOT / "src" / "unbraid" / "base" / "references.bib").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert {VERSION, cited, *re.findall(r"^  version = {(.*)}", entry, flags=re.MULTILINE)} == {PROJECT["version"]}
    assert re.findall(r"^## (\S+)", changes, flags=re.MULTILINE)[0] == PROJECT["version"]


def test_files_that_contributors_are_sent_to_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[\w./-]*)`", text)
    assert named
    places = (ROOT, ROOT / "src" / "unbraid")
    assert [name for name in named if name != "site/" and not any((place / name).exists() for place in places)] == []
