"""`unbraid cite`: the BibTeX of what was used."""

from collections.abc import Iterable
from typing import Annotated

import typer

from unbraid.base.optional import require
from unbraid.base.references import ITSELF, REFERENCES, Reference, read_bibliography
from unbraid.base.suggest import suggestion
from unbraid.cli.show_command import say


def cite(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Metrics, families or datasets; default unbraid.")
    ] = None,
) -> None:
    """Print the BibTeX of metrics, families and datasets.

    Examples:

      unbraid cite mig

      unbraid cite unbraid mig dci_boosted beta_tcvae sprites > references.bib
    """
    say(bibtex(*(names or [ITSELF])))


def bibtex(*names: str) -> str:
    """The entries that these metrics, families and datasets ask for, each once, in the order of the names.

    Raises:
        ValueError: a name is unknown; the message offers the nearest. Or a metric takes no such argument.

    Example:
        >>> print(bibtex("dci_lasso"))
        @inproceedings{eastwood2018framework,
          author    = {Eastwood, Cian and Williams, Christopher K. I.},
          title     = {A Framework for the Quantitative Evaluation of Disentangled Representations},
          booktitle = {International Conference on Learning Representations},
          year      = {2018},
        }
    """
    known = entries()
    return "\n\n".join(known[key].bibtex for key in keys_of(names))


def entries() -> dict[str, Reference]:
    """All papers by key: those of references.bib, and those that stand in the file of a metric."""
    from unbraid.metrics import MEASURES

    return {**REFERENCES, **read_bibliography("\n".join(row.bibtex for row in MEASURES.values()))}


def keys_of(names: Iterable[str]) -> list[str]:
    """Keys of `entries` for these names, each once; raises as `bibtex` does."""
    return list(dict.fromkeys(key for name in names for key in papers_of(name)))


def papers_of(name: str) -> tuple[str, ...]:
    """Keys of the papers of a metric, family or dataset, the one to cite first in front."""
    from unbraid.datasets import DATASETS
    from unbraid.metrics import MEASURES
    from unbraid.metrics._shared.metric_arguments import has_arguments, with_arguments

    if name == ITSELF:
        return (ITSELF,)
    row = name
    if has_arguments(name):  # "mig(bins=5)" is of the papers of mig
        with_arguments(name)
        row = name.partition("(")[0]
    for table in (MEASURES, DATASETS):
        if row in table:
            return table[row].cites
    require("torch", "train", f"no metric or dataset is called {name!r}, and citing a family")
    from unbraid.families import FAMILIES  # last, as PyTorch takes long to load

    if row in FAMILIES:
        return FAMILIES[row].cites
    hint = suggestion(
        name, [*MEASURES, *FAMILIES, *DATASETS, ITSELF], few="give a metric, family or dataset, or unbraid"
    )
    raise ValueError(f"nothing to cite for {name!r}; {hint}")
