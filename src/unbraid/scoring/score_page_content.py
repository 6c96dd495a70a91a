"""What a score card's page says, as plain text, numbers and lists; how it looks is the templates' affair."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.comma_lists import joined
from unbraid.base.repr import WITHIN, p_text
from unbraid.base.types import FloatArray, IntArray
from unbraid.base.version import VERSION
from unbraid.data import Representation
from unbraid.metrics import BLOCKED, METRICS, PRESETS, Metric, by_question
from unbraid.metrics._shared.chance import Noise
from unbraid.scoring.baselines import no_better
from unbraid.scoring.diagnosis import FactorDiagnosis, code_words
from unbraid.scoring.interval import Interval
from unbraid.scoring.named_blocks import REDUCED
from unbraid.scoring.null import IN_WORDS, Null
from unbraid.scoring.scored import Scored
from unbraid.scoring.unwanted import factor_of
from unbraid.show.words import in_words

ScoreCard: TypeAlias = Any  # `unbraid.scoring.card` imports this file

DEAD_KL = 0.01  # nats; UDR's threshold for an informative latent
MOST_CODES = 400  # rows of the table of codes
FIRST = 3  # codes of each factor in a matrix that are shown in any case
LARGEST_TABLE = 400  # entries of a matrix that are printed below its diagram
MINUS = "\N{MINUS SIGN}"
NONE: Mapping[str, float] = {}
FACTOR_FIELDS = ("accuracy", "chance", "errors", "baseline")  # (n_factors,) of some Results, shown beside `per_factor`


def score_table(card: ScoreCard) -> dict[str, Any]:
    """The score table alone: groups of rows, what was skipped, and what failed."""
    names, notes = card.representation.names, card.row_notes()
    rows = {name: _row(name, scored, names, notes[name]) for name, scored in card.scored.items()}
    chosen = by_question({name: scored.metric for name, scored in card.scored.items()})
    groups = [
        {"title": title, "about": explanation, "rows": [rows[name] for name in own]}
        for title, explanation, own in chosen
    ]
    options = _again(card)
    baselines = dict.fromkeys(name for scored in card.scored.values() for name in scored.baselines)
    moved = next((IN_WORDS[scored.null.moved] for scored in card.scored.values() if scored.null), "")
    confidence = f"{100 * float(options['confidence']):g} %" if "confidence" in options else None
    columns = {
        **({"interval": f"{confidence} confidence interval"} if confidence else {}),
        **({"null": f"Rows {moved}", "p": "p"} if moved else {}),
        **{f"baseline {name}": name for name in baselines},
    }
    return {
        "groups": groups,
        "columns": columns,
        "skipped": _without_score(card.skipped),
        "failed": _without_score({name: each.reason for name, each in card.failed.items()}),
    }


def _without_score(reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """The metrics of each reason, in one row."""
    known, rows = {**METRICS, **BLOCKED}, {}
    for name, reason in reasons.items():
        title = known[name].title if name in known else name
        rows.setdefault(reason, []).append({"id": name, "title": title})
    return [{"metrics": metrics, "reason": reason} for reason, metrics in rows.items()]


def description(card: ScoreCard, dead: IntArray) -> dict[str, Any]:
    """What was scored, and how to score it again."""
    names, described = card.representation.code_names, card.saved_input
    return {
        "version": VERSION,
        "seed": card.seed,
        "path": card.path,
        **{key: described[key] for key in ("n_samples", "n_codes", "factors")},
        "of_codes": described.get("of_codes"),
        "notes": card.note_lines(),
        "dead": [names[code] if names else code for code in dead.tolist()],
        "reproduce": _reproduce(card),
        "sources": [(name, scored.metric.title, scored.metric.source) for name, scored in card.scored.items()],
    }


def dead_codes(representation: Representation) -> IntArray:
    """Codes that are constant or, where the posterior is known, whose mean KL to the prior is at most 0.01 nats."""
    codes = representation.codes
    # As floats: booleans have no difference, and that of small whole numbers may overflow.
    low, high = codes.min(axis=0).astype(float), codes.max(axis=0).astype(float)
    dead = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    kl = representation.mean_kl()
    return np.flatnonzero(dead if kl is None else dead | (kl <= DEAD_KL))


def code_table(card: ScoreCard, aligned: Sequence[Mapping[str, Any]], dead: IntArray) -> list[dict[str, Any]]:
    """One row per code: its spread, its KL, what metrics say of it, whether it is dead, and the factors in it.

    Of more than `MOST_CODES` those that matter: codes of factors, those that matrices put first, and of others
    those of the largest spread.
    """
    representation = card.representation
    kl = representation.mean_kl()
    # Column by column, so that a million samples are not copied at once.
    spread = [column.std(dtype=float) for column in representation.codes.T]
    scores = code_scores(card).values()
    labels = representation.code_labels()
    columns, diagnosed = diagnosed_columns(card), card.diagnosis.codes if card.diagnosis is not None else {}
    factors = {column: diagnosed[code].factors for code, column in columns.items()}
    return [
        {
            "code": code,
            "name": labels[code],
            "spread": number_text(spread[code]),
            "kl": None if kl is None else number_text(kl[code]),
            "scores": [number_text(float(each[code])) if np.isfinite(each[code]) else "–" for each in scores],
            "dead": code in dead,
            "factors": list(factors.get(code, ())),
        }
        for code in _that_matter(card, aligned, np.array(spread))
    ]


def diagnosed_columns(card: ScoreCard) -> dict[int, int]:
    """Of each code in the diagnosis its column in the representation, which may hold only those that matter."""
    diagnosis = card.diagnosis
    if diagnosis is None:
        return {}
    columns = {label: column for column, label in enumerate(card.representation.code_labels())}
    labels = {code: code_words([code], diagnosis.code_names) for code in diagnosis.codes}
    return {code: columns[label] for code, label in labels.items() if label in columns}


def _that_matter(card: ScoreCard, aligned: Sequence[Mapping[str, Any]], spread: FloatArray) -> list[int]:
    if len(spread) <= MOST_CODES:
        return list(range(len(spread)))
    own = [code for each in aligned for code in each["codes"] if code >= 0]
    diagnosed = card.diagnosis.codes if card.diagnosis is not None else {}
    own += [column for code, column in diagnosed_columns(card).items() if diagnosed[code].factors]
    first = [int(code) for each in matrices(card) for code in np.argsort(-each["matrix"], axis=0)[:FIRST].T.ravel()]
    wide = np.argsort(-spread, kind="stable").tolist()
    return sorted(list(dict.fromkeys([*own, *first, *wide]))[: max(MOST_CODES, len(set(own)))])


def code_scores(card: ScoreCard) -> dict[str, FloatArray]:
    """The `per_code` of each metric that has one for every code."""
    scores = {name: getattr(scored.result, "per_code", None) for name, scored in card.scored.items()}
    shape = (card.representation.codes.shape[1],)
    return {name: values for name, values in scores.items() if values is not None and np.shape(values) == shape}


def alignments(card: ScoreCard) -> list[dict[str, Any]]:
    """The distinct one-to-one alignments that results hold, each with the metrics that share it."""
    distinct: list[dict[str, Any]] = []
    for name, scored in card.scored.items():
        codes = getattr(scored.result, "alignment", None)
        if codes is None or np.shape(codes) != (len(card.representation.names),):
            continue
        listed = [int(code) for code in codes]
        if max(listed, default=-1) >= card.representation.codes.shape[1]:  # of a metric of the user's own
            continue
        same = next((alignment for alignment in distinct if alignment["codes"] == listed), None)
        if same is None:
            distinct.append({"codes": listed, "metrics": [name]})
        else:
            same["metrics"].append(name)
    return distinct


def matrices(card: ScoreCard) -> list[dict[str, Any]]:
    """The distinct (n_codes, n_factors) importance and information matrices, each with the metrics that share it."""
    shape = (card.representation.codes.shape[1], card.representation.factors.shape[1])
    distinct: list[dict[str, Any]] = []
    for field, quantity in (("mutual_information", "mutual information"), ("importance", "importance")):
        for name, scored in card.scored.items():
            matrix = getattr(scored.result, field, None)
            if matrix is None or np.shape(matrix) != shape or not np.isfinite(matrix).all():
                continue
            same = next((entry for entry in distinct if np.array_equal(entry["matrix"], matrix)), None)
            if same is None:
                distinct.append({"matrix": np.asarray(matrix, float), "quantity": quantity, "metrics": [name]})
            elif name not in same["metrics"]:
                same["metrics"].append(name)
    return distinct


def answer(card: ScoreCard, pictures: Mapping[str, str]) -> dict[str, Any] | None:
    """The panel that says which factors are in the codes; None of a card without a diagnosis."""
    diagnosis = card.diagnosis
    if diagnosis is None:
        return None
    described = {each["name"]: each for each in card.saved_input["factors"]}
    return {
        "short": diagnosis.in_short(),
        "factors": [
            {
                "name": name,
                "verdict": _verdict(each),
                "about": _kind_words(described.get(name, {}), each.unwanted),
                "levels": described.get(name, {}).get("levels", ()),
                "picture": pictures.get(name),
                **dict(zip(("where", "how", "strength"), each.columns(diagnosis.code_names), strict=True)),
            }
            for name, each in diagnosis.factors.items()
        ],
        "codes": diagnosis.codes_text(),
        "notes": diagnosis.notes,
    }


def _verdict(factor: FactorDiagnosis) -> str:
    """What the colour of its line says."""
    if factor.kind == "unclear":
        return "unclear"
    well = {"absent"} if factor.unwanted else {"own code", "circle"}
    return "well" if factor.kind in well else "wrong"


def _kind_words(factor: Mapping[str, Any], unwanted: bool) -> list[str]:
    levels = [f"{factor['size']} levels"] if factor.get("size") else []
    return [*([factor["kind"]] if factor else []), *levels, *(["unwanted"] if unwanted else [])]


def number_text(number: float) -> str:
    """Three decimals, or the magnitude where three decimals would hide it; a true minus sign."""
    magnitude = abs(number)
    if magnitude >= 1000 or 0 < magnitude < 0.0005:
        text = f"{number:.2e}"
    elif magnitude >= 100:
        text = f"{number:.1f}"
    else:
        text = f"{number:z.3f}"
    return text.replace("-", MINUS)


def _row(name: str, scored: Scored, factor_names: Sequence[str], notes: Sequence[str]) -> dict[str, Any]:
    metric, low, high = scored.metric, *scored.metric.range
    error, null = scored.values.get("standard_error"), scored.null
    noise = scored.chance if null is None else Noise(null.mean, null.spread)
    known = {metric.headline, "standard_error"}
    intervals = scored.intervals
    between = {} if intervals is None else intervals.values
    return {
        "id": name,
        "title": metric.title if metric.title != name else "",
        "headline": in_words(metric.headline) if metric.headline != "score" else "",
        "number": scored.headline,
        "text": number_text(scored.headline),
        "error": None if error is None else number_text(error),
        "higher": metric.higher_is_better,
        "range": None if np.isinf([low, high]).all() else (_end_text(low), _end_text(high)),
        "bar": _bar(scored.headline, metric, noise, between.get(metric.headline), scored.baselines),
        "interval": None if intervals is None else _ends(intervals.values[metric.headline]),
        "beside": {
            "interval": _ends(between.get(metric.headline)),
            "null": "" if null is None else f"{null.mean:z.3f} ± {null.spread:.3f}".replace("-", MINUS),
            "p": "" if null is None else p_text(null.p),
            **{f"baseline {name}": number_text(score) for name, score in scored.baselines.items()},
        },
        "baselines": bool(scored.baselines),
        "within": null is not None and null.p > WITHIN,
        "no_better": no_better(metric.higher_is_better, scored.headline, scored.baselines),
        "summary": metric.summary,
        "limitations": metric.limitations,
        "values": [
            (in_words(key), number_text(v), _ends(between.get(key)))
            for key, v in scored.values.items()
            if key not in known
        ],
        "per_factor": _per_factor(scored, factor_names),
        "notes": [*_on_the_number(null, between.get(metric.headline)), *notes],
    }


def _on_the_number(null: Null | None, interval: Interval | None) -> list[str]:
    """What there is to say of the headline beside the columns of the table."""
    notes = []
    if interval is not None and interval.bias is not None:
        notes.append(f"bias {number_text(interval.bias)}")
    if null is not None and null.above is not None:
        notes.append(f"{null.above:.2f} of the way from the mean of {null.of_what} to the best")
    return notes


def _ends(interval: Interval | None) -> str:
    return "" if interval is None else f"{number_text(interval.low)} to {number_text(interval.high)}"


def _per_factor(scored: Scored, names: Sequence[str]) -> dict[str, Any] | None:
    """The table of what a metric says of each factor, or None where it says nothing."""
    values = getattr(scored.result, "per_factor", None)
    if values is None:
        return None
    finite = np.isfinite(values)
    mean = np.mean(values, where=finite) if finite.any() else np.nan
    # DCI quotes disentanglement, which codes have; its factors have completeness. The mean tells which number it is.
    of = next((name for name, number in scored.values.items() if np.isclose(number, mean, rtol=1e-9)), "value")
    # Chance is known of the quoted number alone.
    metric, chance = scored.metric, scored.chance if of == scored.metric.headline else None
    arrays = {name: each for name, each in scored.arrays.items() if name in FACTOR_FIELDS and len(each) == len(names)}
    intervals = scored.intervals
    between = (intervals and intervals.per_factor) or [None] * len(values)
    rows = [
        {
            "factor": factor,
            "text": number_text(float(value)) if np.isfinite(value) else "left out",
            "between": _ends(between[k]),
            "bar": _bar(float(value), metric, chance, between[k])
            if metric.range[0] <= value <= metric.range[1]
            else None,
            "others": [number_text(float(each[k])) if np.isfinite(each[k]) else "–" for each in arrays.values()],
        }
        for k, (factor, value) in enumerate(zip(names, values, strict=True))
    ]
    return {"of": in_words(of), "others": list(arrays), "rows": rows}


def _bar(
    value: float,
    metric: Metric,
    chance: Noise | None,
    interval: Interval | None = None,
    baselines: Mapping[str, float] = NONE,
) -> dict[str, Any] | None:
    """Where a value lies on its range, in percent; None where the range has no end."""
    low, high = metric.range
    if not np.isfinite([low, high]).all() or high <= low:
        return None

    def place(number: float) -> float:
        return round(100 * float(np.clip((number - low) / (high - low), 0, 1)), 2)

    origin, end = sorted((place(max(low, 0.0) if high > 0 else high), place(value)))
    bar: dict[str, Any] = {"start": origin, "width": round(end - origin, 2)}
    if baselines:
        bar["baselines"] = [place(score) for score in baselines.values()]
    if chance is not None and low < chance.score < high:
        bar["chance"] = place(chance.score)
    if interval is not None:
        bar |= {"low": place(interval.low), "wide": round(place(interval.high) - place(interval.low), 2)}
    return bar


def _end_text(number: float) -> str:
    return f"{number:g}".replace("inf", "∞").replace("-", MINUS)


def _reproduce(card: ScoreCard) -> dict[str, str | None]:
    """The command and the lines of Python that score these codes again, where there are any."""
    rows = (*card.scored, *card.skipped, *card.failed)
    unwanted = [factor for name in rows if (factor := factor_of(name)) is not None]
    chosen = [name for name in rows if name not in BLOCKED and factor_of(name) is None]
    every = set(chosen) == set(PRESETS["standard"])
    decided = next((each for name, each in card.computed_with.items() if name in BLOCKED), {})
    blocks = {name: decided[name] for name in ("code_blocks", "factor_blocks") if name in decided}
    representation = card.representation
    units = any(note.startswith(REDUCED) for note in representation.notes)
    with_baselines = any(each.baselines for each in card.scored.values())
    by_row = {"weights": "counts", "groups": "groups"}
    by_row = {name: array for name, array in by_row.items() if getattr(representation, name) is not None}
    again = _again(card)
    arguments = [
        *([] if every else [f"metrics={chosen or 'none'!r}"]),
        *([f"unwanted={unwanted!r}"] if unwanted else []),
        *([] if card.held_out is None else [f"held_out={card.held_out!r}"]),
        *(f"{name}={text!r}" for name, text in blocks.items()),
        *(["units='pca'"] if units else []),
        *(f"{name}={repr(value) if ':' in value else value}" for name, value in again.items()),
        *(f"{name}={array}" for name, array in by_row.items()),
        f"seed={card.seed}",
    ]
    finish = f'{", ".join(arguments)})\ncard.save("scores.html")'
    factors = [*card.chosen_factors, *unwanted]
    named = f".keep_factors({factors!r})" if card.chosen_factors else ""
    if card.path is None and with_baselines:
        call = "unbraid.score_encoder(encode, dataset, baselines=True, untrained=untrained, "
        return {"command": None, "python": f"import unbraid\n\ncard = {call}{finish}"}
    if card.path is None:
        kinds = representation.kinds
        kinds_by_name = dict(zip(representation.names, kinds, strict=True)) if unwanted else list(kinds)
        described = f"kinds={kinds_by_name!r}, names={[*representation.names, *unwanted]!r}, "
        if representation.sizes is not None and "cyclic" in kinds:  # how far around they go
            described += f"sizes={[*representation.sizes, *[0] * len(unwanted)]!r}, "
        call = f"unbraid.score(codes, factors, {described}"
        return {"command": None, "python": f"import unbraid\n\ncard = {call}{finish}"}
    example = card.path == "the shipped example"
    words = [
        *("unbraid", "score", "--example" if example else card.path),
        *([] if every else ["--metrics", ",".join(chosen) or "none"]),
        *(["--factors", joined(card.chosen_factors)] if card.chosen_factors else []),
        *(["--unwanted", joined(unwanted)] if unwanted else []),
        *(["--units", "pca"] if units else []),
        *card.options,
        *(word for name in by_row if f"--{name}" not in card.options for word in (f"--{name}", "COLUMN")),
        *([] if card.held_out is None else ["--held-out", card.held_out]),
        *(word for name, text in blocks.items() for word in (f"--{name.replace('_', '-')}", text)),
        *(word for name, value in again.items() for word in (f"--{name}", value)),
        *(["--baselines"] if with_baselines else []),
        *("--seed", str(card.seed), "--html", "scores.html"),
    ]
    command = shlex.join(words)
    if card.options:  # of labels that no file of codes holds
        return {"command": command, "python": None}
    if with_baselines:
        call = f"unbraid.score(run.codes(){named}, orbits=run.objects, baselines=run.baselines(), {finish}"
        return {"command": command, "python": f"import unbraid\n\nrun = unbraid.load_run({card.path!r})\ncard = {call}"}
    columns = f", columns={factors!r}" if card.chosen_factors else ""
    load = f"Representation.example(){named}" if example else f"Representation.load({card.path!r}{columns})"
    python = f"import unbraid\n\nrepresentation = unbraid.{load}\ncard = unbraid.score(representation, {finish}"
    return {"command": command, "python": python}


def _again(card: ScoreCard) -> dict[str, str]:
    """How rows were moved and how often, and how sure intervals are, where that was asked for."""
    nulls = (each.null for each in card.scored.values())
    intervals = (each.intervals for each in card.scored.values())
    shuffles = next((each.option for each in nulls if each is not None), None)
    confidence = next((f"{each.confidence:g}" for each in intervals if each is not None), None)
    return {name: value for name, value in (("null", shuffles), ("confidence", confidence)) if value is not None}
