"""What the README shows is what it prints."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("left_out", [("dci_boosted", "nk"), pytest.param((), marks=pytest.mark.slow)], ids=len)
def test_the_ten_lines_print_what_stands_below_them(
    left_out: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Daily without the two metrics that learn for half a minute, and without their lines."""
    kinds = [kind for kind, _ in BLOCKS]
    at = kinds.index("text")
    assert kinds[at - 1] == "python"
    code, shown = BLOCKS[at - 1][1], BLOCKS[at][1]
    for name in left_out:
        code, n_calls = re.subn(f', "{name}"', "", code)
        shown, n_lines = re.subn(rf"^{name} .*\n(    .*\n)*", "", shown, flags=re.MULTILINE)
        assert n_calls == n_lines == 1
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    number = re.compile(r"\d\.\d{3}")
    assert number.sub("#", printed) == number.sub("#", shown)
    # The perceptrons of nk add up in another order where the processor has other vector instructions.
    numbers = [[float(each) for each in number.findall(text)] for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.02)


def test_every_link_leads_to_a_file() -> None:
    root = Path(__file__).parent.parent
    for page in (root / "README.md", *root.glob("*.md"), *(root / "docs").glob("*.md"), *root.glob("benchmarks/*.md")):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
