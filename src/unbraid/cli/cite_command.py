"""`unbraid cite`: the BibTeX of what was used."""

from typing import Annotated

import typer

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
    from unbraid.base.references import ITSELF
    from unbraid.show.citations import bibtex

    say(bibtex(*(names or [ITSELF])))
