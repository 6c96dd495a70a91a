"""Write a version and today's date where a release says them, or say why not.

python evidence/release.py X.Y.Z    what `make release` begins with; RELEASING.md has the rest
"""

import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]


def fill(root: Path, version: str, day: date) -> None:
    """Write pyproject.toml, CITATION.cff, the entry of references.bib and CHANGELOG.md of a release.

    Args:
        root: folder of the repository.
        version: "1.2.3".
        day: of the release.

    Raises:
        ValueError: no such version can be released: the topmost heading of the changelog is another, is released
            already, or has nothing below it. Nothing is written then.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"a version is three numbers, such as 1.2.3; got {version!r}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## (.+)\n((?:(?!## ).*\n)*)", changelog, flags=re.MULTILINE)
    if found is None or found[1] != f"{version} (unreleased)":
        top = found[1] if found else "nothing"
        raise ValueError(f"CHANGELOG.md must begin with '## {version} (unreleased)'; it begins with {top!r}")
    if not re.search(r"^- ", found[2], flags=re.MULTILINE):
        raise ValueError(f"CHANGELOG.md says nothing of {version}")
    written = {"CHANGELOG.md": changelog.replace(f"## {found[1]}", f"## {version} ({day})", 1)}
    for name, line, new in (
        ("pyproject.toml", r"^version = .*$", f'version = "{version}"'),
        (
            "CITATION.cff",
            r"^version: .*$(\ndate-released: .*$)?",
            f"version: {version}\ndate-released: {day.isoformat()}",
        ),
        ("src/unbraid/base/references.bib", r"^  version = .*$", f"  version = {{{version}}},"),
    ):
        text, count = re.subn(line, new, (root / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"{name} must have one line with the version; it has {count}")
        written[name] = text
    for name, text in written.items():
        (root / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        fill(ROOT, *sys.argv[1:], date.today())
    except (TypeError, ValueError) as reason:
        sys.exit(f"not released: {reason}")
