"""Lines on the terminal that hold names from outside."""

import typer

from unbraid._utils.repr import printable


def say(text: object = "", *, err: bool = False) -> None:
    """Print a text; what would steer the terminal is written out."""
    typer.echo(printable(str(text), keep="\n\t"), err=err)
