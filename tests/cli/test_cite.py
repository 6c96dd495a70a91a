import sys

import pytest

from tests.conftest import Cli
from unbraid.cli.cite_command import bibtex


def test_bibtex_is_printed_for_names_of_every_kind(unbraid_cli: Cli) -> None:
    assert unbraid_cli("cite", "mig", "beta_vae", "sprites")[1] == bibtex("mig", "beta_vae", "sprites") + "\n"


def test_a_metric_with_arguments_is_cited_as_the_metric(unbraid_cli: Cli) -> None:
    assert unbraid_cli("cite", "mig(bins=5)", "mig")[1] == bibtex("mig") + "\n"
    code, _, said = unbraid_cli("cite", "mig(bin=5)")
    assert (code, said) == (2, "unbraid: mig(bin=5): mig takes no argument 'bin'; did you mean 'bins'?\n")
    assert unbraid_cli("cite", "migg(bins=5)")[0] == 2


def test_without_torch_metrics_and_datasets_are_cited_and_a_family_says_what_it_needs(
    unbraid_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert unbraid_cli("cite", "mig", "sprites")[0] == 0
    code, printed, error = unbraid_cli("cite", "vae")
    assert (code, printed) == (2, "")
    assert error == (
        "unbraid: no metric or dataset is called 'vae', and citing a family needs torch: pip install 'unbraid[train]'\n"
    )
