"""Print the oldest versions that pyproject.toml names, as constraints for pip; torch is that of constraints.txt."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = (
    "train",
    "data",
    "onnx",
    "ray",
    "track",
    "anndata",
)  # what users install; tools are as new as they come


def oldest() -> dict[str, str]:
    """The version named by each requirement; the higher one where several name the same package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(text for extra in EXTRAS for text in project["optional-dependencies"][extra])]
    found: dict[str, str] = {}
    for requirement in map(Requirement, named):
        for bound in requirement.specifier:
            found[requirement.name] = max(found.get(requirement.name, "0"), bound.version, key=_number)
    return {name: version for name, version in found.items() if name != "torch"}


def _number(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    pinned = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    print("\n".join([pinned, *(f"{name}=={version}" for name, version in oldest().items())]))
