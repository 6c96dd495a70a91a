"""`unbraid continue`: train a finished run further."""

from pathlib import Path
from typing import Annotated

import typer

from unbraid.cli._options import CheckpointEvery, Trust
from unbraid.cli._progress import continuing
from unbraid.cli.train_command import print_runs, training_progress


def continue_run(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run, as `unbraid train` makes it.")],
    steps: Annotated[int, typer.Option(help="Total training steps, including those already taken.")],
    dataset: Annotated[str | None, typer.Option(help="Training images; default those named in the run.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the new run; default the one that holds this run.")
    ] = None,
    checkpoint_every: CheckpointEvery = 120.0,
    *,
    trust: Trust,
) -> None:
    """Train a finished run further, into a folder of its own.

    The new run has the weights and the id of one that was trained with so many steps from the start. If that is
    impossible, because its learning rate falls over the whole training, nothing is trained.

    Examples:

      unbraid continue runs/3f6c0f0a8d1e2b47 --steps 60000
    """
    from unbraid.runs.run import open_run
    from unbraid.training.continuing import continue_run as go_on

    begun = open_run(run, trust=trust.names)
    with continuing(), training_progress(str(begun.config["family"])) as report:
        longer = go_on(begun, steps, dataset=dataset, out=out, checkpoint_every=checkpoint_every, progress=report)
    print_runs([longer])
