"""`unbraid bench ... --suite`: an encoder or a family on fixed images, with a record for `unbraid results add`."""

import re
from datetime import date
from pathlib import Path

from unbraid.cli._options import listed, settings_of
from unbraid.cli._progress import continuing, progress_bar
from unbraid.cli.show import STDOUT, Files, check_output, say, show


def bench_suite(
    names: list[str], suite: str, *, sets: str | None, seeds: str | None, settings: list[str] | None, work: Path | None,
    out: Path | None, model: str | None, processes: int | None, to: Files,
) -> None:  # fmt: skip
    """What the command does where a suite is named; arguments are its options.

    Raises:
        ValueError: as `unbraid.bench.encoder.bench_encoder`; or an option that cannot be read.
    """
    if len(names) > 1:
        raise ValueError(f"--suite {suite} takes one family or encoder at a time; got {', '.join(names)}")
    if out == STDOUT:
        raise ValueError("--out names the file of the record; --json - prints it")
    if out is not None:
        check_output("--out", out, ".json")
    [what] = names
    from unbraid._utils.optional import require

    require("torch", "train", "unbraid bench")
    from unbraid.bench.encoder import bench_encoder
    from unbraid.bench.record import check_model, model_of, record
    from unbraid.bench.shown import table
    from unbraid.cli.study import study_report
    from unbraid.results.files import text_of
    from unbraid.storage.files import write_text

    whose = model or model_of(what)
    check_model(whose)
    folder = work or Path("bench") / re.sub(r"[^\w.+-]+", "-", what)
    with continuing(), progress_bar(what) as bar:
        found = bench_encoder(
            what, suite=suite, work=folder, sets=listed(sets) or None, seeds=_seeds(seeds),
            settings=settings_of("--set", settings), processes=processes, training=study_report(what, bar),
            progress=lambda doing, done, total: bar(f"{what}: {doing}", done, total, f"{done}/{total}"),
        )  # fmt: skip
    content = record(found, whose, date.today())
    notes = [*found.notes]
    if found.trial:
        notes.append(f"a trial, and no result of the suite: {'; '.join(found.trial)}")
    show(table(content, notes), to, content=content)
    if out is not None:
        write_text(out, text_of(content))
        say(f"wrote {out}; unbraid results add {out} records it", err=to.printed)


def _seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in listed(text)]
    except ValueError:
        raise ValueError(f"--seeds {text}: write which, such as 0,1") from None
