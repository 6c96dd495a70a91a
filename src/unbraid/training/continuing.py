"""Continue a finished run: the result equals a training with more steps from the start."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from unbraid.base.arguments import check_number, check_whole
from unbraid.families.building import Member
from unbraid.families.family import NO_AUGMENTATION
from unbraid.families.family_table import find_family
from unbraid.files.run_files import CHECKPOINT
from unbraid.files.trust import Trusted, UntrustedCode, named
from unbraid.runs.run import Run, named_images, open_run
from unbraid.training.checkpoints import load_checkpoint, save_checkpoint
from unbraid.training.loop import CHECKPOINT_SECONDS, Plan, identity_of
from unbraid.training.source import Source, opened_dataset
from unbraid.training.train import TrainingProgress, code_of, train_into, training_of


def continue_run(
    run: Run | str | Path,
    steps: int,
    *,
    dataset: Source | None = None,
    augment: str | Callable[..., Any] | None = None,
    out: str | Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    processes: int | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> Run:
    """Train a finished run further, into a run of its own.

    The new run is the one that `train` would have made with so many steps: same weights to the bit, same id. It begins
    at the checkpoint that the finished run keeps, and its `status` says from which run it continued and where.

    Args:
        run: a finished run, or its folder.
        steps: in all, those taken included.
        dataset: the images of the training; by default the ones that the run names.
        augment: the function by which the images of batches were changed, or its name, where there was one.
        out: folder of the run folders; default the one that the finished run is in.
        checkpoint_every, processes, progress: as for `train`.

    Raises:
        ValueError: the run diverged, stopped early, has taken so many steps already, kept no checkpoint, or is of a
            training that would have been another from the start with more steps; its network's or family's code, or
            the training version, is another now; or other images than those of the training.
        OSError, KeyboardInterrupt: as `train`.
    """
    begun = run if isinstance(run, Run) else open_run(run)
    begun.check_trust()
    plan, member = training_of(begun.config)
    member = _with_augmentation(begun, member, augment)
    steps, seconds = check_whole("steps", steps, 1), check_number("checkpoint_every", checkpoint_every, least=0)
    longer = replace(plan, steps=steps, checkpoint_seconds=seconds).resolved()
    _check(begun, plan, member, longer)

    def read(done: int, total: int) -> None:
        if progress:
            progress(TrainingProgress(1, 0, longer.steps, {}, reading=(done, total)))

    opened, described = opened_dataset(named_images(begun) if dataset is None else dataset, read)
    if described["content"] != begun.config["dataset"]["content"]:
        raise ValueError(f"{begun.path} was trained on other images than these")

    def begin(part: Path, member: Member) -> None:
        facts = identity_of(longer, member, opened)
        existing = load_checkpoint(part / CHECKPOINT, facts)
        finished = load_checkpoint(begun.path / CHECKPOINT, identity_of(plan, member, opened))
        if existing.step < finished.step:
            save_checkpoint(part / CHECKPOINT, replace(finished, origin=(begun.path.name, finished.step)), facts)

    (trained,) = train_into(
        begun.path.parent if out is None else Path(out),
        longer, [member], opened, described, processes=processes, progress=progress, begin=begin,
    )  # fmt: skip
    return trained


def _with_augmentation(begun: Run, member: Member, augment: str | Callable[..., Any] | None) -> Member:
    """The member with its augmentation as the user's own code.

    Raises:
        ValueError: it was trained with one that is not given, or with another.
    """
    recorded = member.hyper.get("augment", NO_AUGMENTATION)
    if augment is None:
        if recorded != NO_AUGMENTATION and not isinstance(recorded, Trusted):
            raise UntrustedCode(
                f"{begun.path} was trained with the augmentation {recorded!r}, which it needs again",
                str(recorded),
                "give the function or its name: continue_run(run, steps, augment=...)",
            )
        return member
    name = named(augment) if callable(augment) else Trusted(augment)
    if name != recorded:
        raise ValueError(f"{begun.path} was trained with the augmentation {recorded!r}, not {str(name)!r}")
    return Member(member.seed, {**member.hyper, "augment": name})


def _check(begun: Run, plan: Plan, member: Member, longer: Plan) -> None:
    row = find_family(plan.family)
    if begun.status["state"] != "finished":
        raise ValueError(f"{begun.path} diverged at step {begun.status['step']}: there is nothing to continue")
    if begun.status.get("held_out", {}).get("stopped"):
        raise ValueError(
            f"{begun.path} stopped early, at step {begun.status['step']}, by the ELBO of images kept out; "
            "with more steps it would stop there, too"
        )
    if row.fit is not None:
        raise ValueError(f"{begun.path}: {plan.family} is computed, not trained in steps")
    if longer.steps <= plan.steps:
        raise ValueError(f"{begun.path} has taken {plan.steps} steps: steps, in all, must be more; got {longer.steps}")
    if member.hyper["schedule"] in ("cosine", "linear"):
        raise ValueError(
            f"{begun.path}: its learning rate fell to 0 over {plan.steps} steps (schedule={member.hyper['schedule']}); "
            "more steps are another training from the start"
        )
    if row.by_length:
        raise ValueError(f"{begun.path}: {row.by_length}; more steps are another training from the start")
    if (version := begun.config.get("training_version", 1)) != row.version:
        raise ValueError(
            f"{begun.path} is of training version {version} of {plan.family}, here it is {row.version}, which gives "
            "other weights; train anew"
        )
    if begun.config.get("code", {}) != code_of(plan, member):
        named = " and ".join(code_of(plan, member))
        raise ValueError(f"{begun.path}: the source of {named} has changed since; train it again from the start")
    if not (begun.path / CHECKPOINT).is_file():
        raise ValueError(
            f"{begun.path} keeps no {CHECKPOINT}, without which it cannot be continued; "
            "runs of studies and exported ones keep none"
        )
