import pytest

from unbraid.cli.app import main
from unbraid.report.citations import bibtex


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["unbraid", "cite", *arguments])
    main()


def test_bibtex_is_printed_for_names_of_every_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "mig", "beta_vae", "sprites")
    assert capsys.readouterr().out == bibtex("mig", "beta_vae", "sprites") + "\n"


def test_without_a_name_unbraid_itself_is_cited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch)
    assert capsys.readouterr().out.startswith("@software{unbraid,")


def test_an_unknown_name_is_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(monkeypatch, "beta_tcvea")
    printed = capsys.readouterr()
    assert (left.value.code, printed.out) == (2, "")
    assert printed.err == "unbraid: nothing to cite for 'beta_tcvea'; did you mean 'beta_tcvae'?\n"
