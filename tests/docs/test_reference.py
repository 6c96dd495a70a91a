"""What the site is made of, without building it: docstrings, links, imports, notebooks."""

import inspect
import io
import json
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from docutils.frontend import get_default_settings
from docutils.nodes import system_message
from docutils.parsers.rst import Parser
from docutils.utils import new_document

from tests.docs.conftest import ROOT

WRITTEN = type | ModuleType  # what has a docstring of its own, beside functions
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
TEXTS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py"), *NOTEBOOKS]


def test_every_public_docstring_is_sound_markup() -> None:
    from pages.reference import describe, homes, modules
    from sphinx.ext.napoleon import Config, GoogleDocstring

    exported = {name: value for name, (_, value) in homes().items()} | dict(modules())
    public = {name: value for name, value in exported.items() if inspect.isroutine(value) or isinstance(value, WRITTEN)}
    methods = {
        f"{name}.{each}": member
        for name, value in public.items()
        if isinstance(value, type)
        for each, member in vars(value).items()
        if inspect.isroutine(member) and not each.startswith("_")
    }
    assert len(public) > 150
    settings = get_default_settings(Parser)
    settings.report_level, settings.warning_stream = 2, io.StringIO()
    faults: list[str] = []
    for name, value in (public | methods).items():
        lines = (inspect.getdoc(value) or "").splitlines()
        describe(None, "class" if isinstance(value, type) else "function", name, value, None, lines)
        source = str(GoogleDocstring(lines, Config(napoleon_use_rtype=False, napoleon_use_ivar=True)))
        document = new_document(name, settings)
        Parser().parse(source, document)
        faults += [f"{name}: {message.astext()}" for message in document.findall(system_message)]
    assert not faults


def test_every_public_name_has_a_page_and_each_object_one() -> None:
    from pages.reference import homes, modules, pages

    public = homes()
    assert {f"{place}.{name}" for place, module in modules().items() for name in module.__all__} == set(public)
    assert {"unbraid", "unbraid.families", "unbraid.ranking.ranking"} <= set(modules())
    made = [place for place, _ in pages()]
    assert len(made) == len(set(made))
    assert {page for page, _ in public.values() if page.startswith("reference/")} <= set(made)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_texts_teach_imports_of_public_names_alone(path: Path) -> None:
    from pages.reference import modules

    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    for module, given, listed in re.findall(
        r"^from (unbraid[\w.]*) import (?:([\w, ]+)|\(([^)]*)\))", text, re.MULTILINE
    ):
        assert module in modules(), f"{module} is not public"
        names = {name.strip() for name in (given or listed).split(",")} - {""}
        assert names <= set(import_module(module).__all__), module


def test_links_between_files_become_links_between_pages() -> None:
    from pages.texts import relinked

    rows = {"metrics": ["mig"], "datasets": []}
    text = "[a](../../docs/metrics.md#mig) [b](README.md) [c](../../src/unbraid/py.typed) [d](https://e.org) `x[0](y)`"
    assert relinked(text, "evidence/benchmarks/README.md", rows) == (
        "[a](metrics/mig.md) [b](benchmarks.md) c [d](https://e.org) `x[0](y)`"
    )
    assert relinked("[a](#mig)", "docs/metrics.md", rows) == "[a](metrics/mig.md)"
    assert relinked("[a](../CONTRIBUTING.md#style)", "docs/reproductions/x.md", rows) == (
        "[a](../CONTRIBUTING.md#style)"
    )
    assert relinked("![a](images/page.png)", "docs/x.md", rows) == "![a](images/page.png)"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_their_outputs(path: Path) -> None:
    cells = [each for each in json.loads(path.read_text("utf-8"))["cells"] if each["cell_type"] == "code"]
    assert not any(each["outputs"] or each["execution_count"] for each in cells), "clear the outputs before you commit"
    assert len(cells) >= 5
