"""Every row of every table has papers to cite, and the entries are sound BibTeX."""

import re
import unicodedata
from pathlib import Path

import pytest
import yaml

import unbraid
from unbraid.base.references import ITSELF, REFERENCES, read_bibliography
from unbraid.cli.cite_command import bibtex, entries, keys_of, papers_of
from unbraid.datasets import DATASETS
from unbraid.families.family_table import FAMILIES
from unbraid.metrics import MEASURES

ENTRIES = entries()
REQUIRED = {
    "article": {"journal"},
    "inproceedings": {"booktitle"},
    "misc": {"howpublished"},
    "phdthesis": {"school"},
    "techreport": {"institution"},
    "software": {"version"},
}


@pytest.mark.parametrize("name", [*MEASURES, *FAMILIES, *DATASETS])
def test_every_metric_family_and_dataset_has_its_papers(name: str) -> None:
    assert papers_of(name)


def test_every_paper_is_cited_by_something() -> None:
    assert set(keys_of([ITSELF, *MEASURES, *FAMILIES, *DATASETS])) == set(ENTRIES)


def test_a_name_means_one_thing() -> None:
    names = [*MEASURES, *FAMILIES, *DATASETS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [*MEASURES, *FAMILIES])
def test_papers_are_those_that_the_table_names(name: str) -> None:
    """Family name of the first author, and year, both written by hand in two places."""
    row = MEASURES.get(name) or FAMILIES[name]
    short = {"DCI 2018": "Eastwood 2018", "dlib": "Locatello 2019"}
    said = row.source
    for abbreviation, meant in short.items():
        said = said.replace(abbreviation, meant)
    pairs = {(key.rstrip("s"), year) for key, year in re.findall(r"([A-ZÀ-Ž][\w-]+)[^;0-9]*? (\d{4})", said)}
    for author, year in pairs:
        mine = [ENTRIES[key] for key in papers_of(name)]
        assert any(_bare(author) in _bare(each.fields["author"]) and year == each.fields["year"] for each in mine), (
            author,
            year,
        )


def _bare(text: str) -> str:
    """Without accents."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


@pytest.mark.parametrize("key", ENTRIES)
def test_entries_have_the_fields_of_their_kind_and_balanced_braces(key: str) -> None:
    entry = ENTRIES[key]
    assert {"author", "title", "year"} | REQUIRED[entry.kind] <= set(entry.fields)
    assert entry.bibtex.count("{") == entry.bibtex.count("}")
    assert re.match(rf"@{entry.kind}\{{{key},\n", entry.bibtex)
    for name in entry.fields["author"].split(" and "):
        assert ", " in name or name.startswith("{"), name  # family name first
    if key != ITSELF:
        family = unicodedata.normalize("NFKD", entry.fields["author"].partition(",")[0].partition("-")[0])
        assert key.startswith(re.sub(r"[^a-z]", "", family.lower()) + entry.fields["year"])


def test_every_line_of_the_bibliography_is_in_an_entry() -> None:
    """What is not written in the form that is read would be missing without a word."""
    bib = (Path(unbraid.__file__).parent / "base" / "references.bib").read_text(encoding="utf-8")
    text = "\n".join([bib, *(row.bibtex for row in MEASURES.values())])
    entries = "\n\n".join(entry.bibtex for entry in ENTRIES.values())
    said = [line for line in text.splitlines() if not line.startswith("%")]
    assert list(filter(None, said)) == list(filter(None, entries.splitlines()))
    assert text.count("@") == len(ENTRIES)


def test_a_bibliography_is_read_as_it_is_written() -> None:
    entry = (
        "@misc{a2001b,\n  author = {A, B. and {The {$\\beta$} team}},\n  title  = {x = {Y}, z},\n  year   = {2001},\n}"
    )
    found = read_bibliography(f"% Some\n\n{entry}\n\n{entry.replace('a2001b', 'c2001')}\n")
    assert list(found) == ["a2001b", "c2001"]
    assert found["a2001b"].bibtex == entry
    assert found["a2001b"].fields == {
        "author": "A, B. and {The {$\\beta$} team}",
        "title": "x = {Y}, z",
        "year": "2001",
    }
    assert str(found["a2001b"]) == "B. A and The β team (2001). x = Y, z. ."


def test_entries_come_once_and_in_order() -> None:
    assert keys_of(["d_lsbd", "snc", "square", "nk"]) == ["tonnaer2022quantifying", "mahon2023correcting"]
    assert bibtex("snc", "nk").count("@article") == 1


def test_unbraid_itself_is_cited_as_its_citation_file_says() -> None:
    said = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8"))
    own = REFERENCES[ITSELF]
    assert own.fields["title"] == said["title"]
    assert own.fields["author"] == "{" + said["authors"][0]["name"] + "}"
    assert own.fields["version"] == str(said["version"]) == unbraid.__version__
