"""A number of things, in words."""


def counted(number: float, thing: str) -> str:
    """Such as `1 image` and `30 images`."""
    return f"{number:,.10g} {thing}{'' if number == 1 else 's'}"
