"""What a score card's page says, as plain text, numbers and lists; how it looks is the templates' affair."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.comma_lists import joined
from unbraid.base.repr import WITHIN, p_equals
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation
from unbraid.data.units import REDUCED
from unbraid.metrics import BLOCKED, METRICS, PRESETS, Metric, by_question
from unbraid.metrics._shared.chance import Noise
from unbraid.scoring.baselines import NO_BETTER, no_better
from unbraid.scoring.interval import Interval, Intervals
from unbraid.scoring.null import IN_WORDS, Null
from unbraid.show.words import in_words

Card: TypeAlias = Mapping[str, Any]  # see `unbraid.scoring.score_page`
DEAD_KL = 0.01  # nats; UDR's threshold for an informative latent
MOST_CODES = 400  # rows of the table of codes
FIRST = 3  # codes of each factor in a matrix that are shown in any case
LARGEST_TABLE = 400  # entries of a matrix that are printed below its diagram
NONE: Mapping[str, float] = {}
FACTOR_FIELDS = ("accuracy", "chance", "errors", "baseline")  # (n_factors,) of some Results, shown beside `per_factor`


def score_table(card: Card) -> dict[str, Any]:
    """The score table alone: groups of rows, what was skipped, and what failed."""
    names = card["representation"].names
    rows = {name: _row(name, scored, names) for name, scored in card["scored"].items()}
    chosen = by_question({name: scored["metric"] for name, scored in card["scored"].items()})
    groups = [
        {"title": title, "about": explanation, "rows": [rows[name] for name in own]}
        for title, explanation, own in chosen
    ]
    options = _again(card)
    return {
        "groups": groups,
        "skipped": _without_score(card["skipped"]),
        "failed": _without_score(card["failed"]),
        "confidence": f"{100 * float(options['confidence']):g} %" if "confidence" in options else None,
    }


def _without_score(reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """The metrics of each reason, in one row."""
    known, rows = {**METRICS, **BLOCKED}, {}
    for name, reason in reasons.items():
        title = known[name].title if name in known else name
        rows.setdefault(reason, []).append({"id": name, "title": title})
    return [{"metrics": metrics, "reason": reason} for reason, metrics in rows.items()]


def description(card: Card, dead: IntArray) -> dict[str, Any]:
    """What was scored, and how to score it again."""
    names = card["representation"].code_names
    return {
        "version": card["unbraid"],
        "seed": card["seed"],
        "path": card["path"],
        **{key: card["input"][key] for key in ("n_samples", "n_codes", "factors")},
        "of_codes": card["input"].get("of_codes"),
        "notes": card["notes"],
        "dead": [names[code] if names else code for code in dead.tolist()],
        "reproduce": _reproduce(card),
        "sources": [(name, scored["metric"].title, scored["metric"].source) for name, scored in card["scored"].items()],
    }


def dead_codes(representation: Representation) -> IntArray:
    """Codes that are constant or, where the posterior is known, whose mean KL to the prior is at most 0.01 nats."""
    codes = representation.codes
    # As floats: booleans have no difference, and that of small whole numbers may overflow.
    low, high = codes.min(axis=0).astype(float), codes.max(axis=0).astype(float)
    dead = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    kl = representation.mean_kl()
    return np.flatnonzero(dead if kl is None else dead | (kl <= DEAD_KL))


def code_table(card: Card, aligned: Sequence[Mapping[str, Any]], dead: IntArray) -> list[dict[str, Any]]:
    """One row per code: its spread, its KL, what metrics say of it, whether it is dead, and its own factor.

    Of more than `MOST_CODES` those that matter: own codes of factors, those that matrices put first, and of others
    those of the largest spread.
    """
    representation = card["representation"]
    kl = representation.mean_kl()
    # Column by column, so that a million samples are not copied at once.
    spread = [column.std(dtype=float) for column in representation.codes.T]
    scores = code_scores(card).values()
    labels = representation.code_labels()
    owners: dict[int, list[str]] = {}
    for factor, code in zip(representation.names, aligned[0]["codes"] if aligned else (), strict=False):
        owners.setdefault(code, []).append(factor)
    return [
        {
            "code": code,
            "name": labels[code],
            "spread": number_text(spread[code]),
            "kl": None if kl is None else number_text(kl[code]),
            "scores": [number_text(float(each[code])) if np.isfinite(each[code]) else "–" for each in scores],
            "dead": code in dead,
            "factors": owners.get(code, []),
        }
        for code in _that_matter(card, aligned, np.array(spread))
    ]


def _that_matter(card: Card, aligned: Sequence[Mapping[str, Any]], spread: FloatArray) -> list[int]:
    if len(spread) <= MOST_CODES:
        return list(range(len(spread)))
    own = [code for each in aligned for code in each["codes"] if code >= 0]
    first = [int(code) for each in matrices(card) for code in np.argsort(-each["matrix"], axis=0)[:FIRST].T.ravel()]
    wide = np.argsort(-spread, kind="stable").tolist()
    return sorted(list(dict.fromkeys([*own, *first, *wide]))[: max(MOST_CODES, len(set(own)))])


def code_scores(card: Card) -> dict[str, FloatArray]:
    """The `per_code` of each metric that has one for every code."""
    scores = {name: getattr(scored["result"], "per_code", None) for name, scored in card["scored"].items()}
    shape = (card["representation"].codes.shape[1],)
    return {name: values for name, values in scores.items() if values is not None and np.shape(values) == shape}


def alignments(card: Card) -> list[dict[str, Any]]:
    """The distinct one-to-one alignments that results hold, each with the metrics that share it."""
    distinct: list[dict[str, Any]] = []
    for name, scored in card["scored"].items():
        codes = getattr(scored["result"], "alignment", None)
        if codes is None or np.shape(codes) != (len(card["representation"].names),):
            continue
        listed = [int(code) for code in codes]
        if max(listed, default=-1) >= card["representation"].codes.shape[1]:  # of a metric of the user's own
            continue
        same = next((alignment for alignment in distinct if alignment["codes"] == listed), None)
        if same is None:
            distinct.append({"codes": listed, "metrics": [name]})
        else:
            same["metrics"].append(name)
    return distinct


def matrices(card: Card) -> list[dict[str, Any]]:
    """The distinct (n_codes, n_factors) importance and information matrices, each with the metrics that share it."""
    shape = (card["representation"].codes.shape[1], card["representation"].factors.shape[1])
    distinct: list[dict[str, Any]] = []
    for field, quantity in (("mutual_information", "mutual information"), ("importance", "importance")):
        for name, scored in card["scored"].items():
            matrix = getattr(scored["result"], field, None)
            if matrix is None or np.shape(matrix) != shape or not np.isfinite(matrix).all():
                continue
            same = next((entry for entry in distinct if np.array_equal(entry["matrix"], matrix)), None)
            if same is None:
                distinct.append({"matrix": np.asarray(matrix, float), "quantity": quantity, "metrics": [name]})
            elif name not in same["metrics"]:
                same["metrics"].append(name)
    return distinct


def factor_table(
    card: Card, matrix_entries: Sequence[Mapping[str, Any]], aligned: Sequence[Mapping[str, Any]], dead: IntArray
) -> dict[str, Any]:
    """For each factor the code it was aligned with, and the code that each matrix puts first with its share."""
    first = [(each["metrics"], _first_codes(each["matrix"])) for each in matrix_entries]
    labels = card["representation"].code_labels()
    rows = []
    for k, factor in enumerate(card["representation"].names):
        own = [each["codes"][k] for each in aligned]
        choices = [(code, share) for _, codes in first for code, share in [codes[k]]]
        reference = own[0] if own else next((code for code, _ in choices if code is not None), None)
        rows.append(
            {
                "factor": factor,
                "kind": card["representation"].kinds[k],
                "own": [_code_cell(code, labels, reference, dead) for code in own],
                "choices": [_code_cell(code, labels, reference, dead, share) for code, share in choices],
            }
        )
    return {
        "own": [each["metrics"] for each in aligned],
        "choices": [{"metrics": each["metrics"], "quantity": each["quantity"]} for each in matrix_entries],
        "rows": rows,
    }


def number_text(number: float) -> str:
    """Three decimals, or the magnitude where three decimals would hide it; a true minus sign."""
    magnitude = abs(number)
    if magnitude >= 1000 or 0 < magnitude < 0.0005:
        text = f"{number:.2e}"
    elif magnitude >= 100:
        text = f"{number:.1f}"
    else:
        text = f"{number:z.3f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _row(name: str, scored: Mapping[str, Any], factor_names: Sequence[str]) -> dict[str, Any]:
    metric, low, high = scored["metric"], *scored["metric"].range
    error, null = scored["values"].get("standard_error"), scored.get("null")
    noise = scored["chance"] if null is None else Noise(null.mean, null.spread)
    known = {metric.headline, "standard_error"}
    intervals: Intervals | None = scored.get("intervals")
    between = {} if intervals is None else intervals.values
    return {
        "id": name,
        "title": metric.title if metric.title != name else "",
        "headline": in_words(metric.headline) if metric.headline != "score" else "",
        "number": scored["headline"],
        "text": number_text(scored["headline"]),
        "error": None if error is None else number_text(error),
        "higher": metric.higher_is_better,
        "range": None if np.isinf([low, high]).all() else (_end_text(low), _end_text(high)),
        "bar": _bar(scored["headline"], metric, noise, between.get(metric.headline), scored.get("baselines", {})),
        "interval": None if intervals is None else _interval(intervals, metric.headline),
        "null": None if null is None else _null(null),
        "baselines": _baselines(scored),
        "summary": metric.summary,
        "limitations": metric.limitations,
        "values": [
            (in_words(key), number_text(v), _ends(between.get(key)))
            for key, v in scored["values"].items()
            if key not in known
        ],
        "per_factor": _per_factor(scored, factor_names),
        "notes": list(scored["notes"]),
        "seconds": f"{scored['seconds']:.2g}" if scored["seconds"] < 10 else f"{scored['seconds']:.0f}",
        "seeded": metric.stochastic,
    }


def _null(null: Null) -> dict[str, Any]:
    """What stands below the bar."""
    above = "" if null.above is None else f", {null.above:.2f} of the way from it to the best"
    middle = f"middle half of the rows {number_text(null.score)}, " if null.moved == "shift" else ""
    moved = f"{IN_WORDS[null.moved]} {number_text(null.mean)} ± {number_text(null.spread)}"
    return {"text": f"{middle}{moved}{above}, {p_equals(null.p)}", "within": null.p > WITHIN}


def _baselines(scored: Mapping[str, Any]) -> dict[str, Any] | None:
    """What stands below the bar; None without any."""
    scores: Mapping[str, float] = scored.get("baselines", {})
    if not scores:
        return None
    listed = [(name, number_text(score)) for name, score in scores.items()]
    return {
        "scores": listed,
        "no_better": NO_BETTER if no_better(scored["metric"].higher_is_better, scored["headline"], scores) else "",
    }


def _interval(intervals: Intervals, headline: str) -> str:
    """What stands below the bar."""
    own = intervals.values[headline]
    bias = "" if own.bias is None else f"; bias {number_text(own.bias)}"
    return f"{_ends(own)}{bias}"


def _ends(interval: Interval | None) -> str:
    return "" if interval is None else f"{number_text(interval.low)} to {number_text(interval.high)}"


def _per_factor(scored: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any] | None:
    """The table of what a metric says of each factor, or None where it says nothing."""
    values = getattr(scored["result"], "per_factor", None)
    if values is None:
        return None
    finite = np.isfinite(values)
    mean = np.mean(values, where=finite) if finite.any() else np.nan
    # DCI quotes disentanglement, which codes have; its factors have completeness. The mean tells which number it is.
    of = next((name for name, number in scored["values"].items() if np.isclose(number, mean, rtol=1e-9)), "value")
    # Chance is known of the quoted number alone.
    metric, chance = scored["metric"], scored["chance"] if of == scored["metric"].headline else None
    arrays = {
        name: each for name, each in scored["arrays"].items() if name in FACTOR_FIELDS and len(each) == len(names)
    }
    intervals: Intervals | None = scored.get("intervals")
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
    return f"{number:g}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}")


def _first_codes(matrix: FloatArray) -> list[tuple[int | None, float]]:
    """The first code of each column and its share of the column; None where the column is empty."""
    totals = np.abs(matrix).sum(axis=0)
    leaders = np.abs(matrix).argmax(axis=0)
    return [
        (int(code), abs(matrix[code, k]) / totals[k]) if totals[k] > 0 else (None, 0.0)
        for k, code in enumerate(leaders)
    ]


def _code_cell(
    code: int | None, labels: Sequence[str], reference: int | None, dead: IntArray, share: float | None = None
) -> dict[str, Any]:
    text = labels[code] if code is not None and code >= 0 else None
    return {
        "text": text or "none",
        "share": None if share is None or text is None else f"{100 * share:.0f} %",
        "differs": code != reference,
        "dead": text is not None and code in dead,
    }


def _reproduce(card: Card) -> dict[str, str | None]:
    decided = next((each for name, each in card.get("computed_with", {}).items() if name in BLOCKED), {})
    blocks = {name: decided[name] for name in ("code_blocks", "factor_blocks") if name in decided}
    unwanted_rows = card.get("unwanted", {})
    unwanted = list(unwanted_rows.values())
    rows = (*card["scored"], *card["skipped"], *card["failed"])
    chosen = [name for name in rows if name not in BLOCKED and name not in unwanted_rows]
    every = set(chosen) == set(PRESETS["standard"])
    only = "" if every else f"metrics={chosen!r}, "
    only += f"unwanted={unwanted!r}, " if unwanted else ""
    only += "" if card["held_out"] is None else f"held_out={card['held_out']!r}, "
    only += "".join(f"{name}={text!r}, " for name, text in blocks.items())
    units = any(note.startswith(REDUCED) for note in card["representation"].notes)
    only += "units='pca', " if units else ""
    again = _again(card)
    only += "".join(f"{name}={repr(value) if ':' in value else value}, " for name, value in again.items())
    weighted, grouped = (getattr(card["representation"], name) is not None for name in ("weights", "groups"))
    only += "weights=counts, " if weighted else ""
    only += "groups=groups, " if grouped else ""
    finish = f'{only}seed={card["seed"]})\ncard.save("scores.html")'
    with_baselines = any(each.get("baselines") for each in card["scored"].values())
    if card["path"] is None:
        if with_baselines:
            call = "unbraid.score_encoder(encode, dataset, baselines=True, untrained=untrained, "
            return {"command": None, "python": f"import unbraid\n\ncard = {call}{finish}"}
        representation = card["representation"]
        kinds = representation.kinds
        kinds_by_name = dict(zip(representation.names, kinds, strict=True)) if unwanted else list(kinds)
        arguments = f"kinds={kinds_by_name!r}, names={[*representation.names, *unwanted]!r}, "
        if representation.sizes is not None and "cyclic" in kinds:  # how far around they go
            arguments += f"sizes={[*representation.sizes, *[0] * len(unwanted)]!r}, "
        return {
            "command": None,
            "python": f"import unbraid\n\ncard = unbraid.score(codes, factors, {arguments}{finish}",
        }
    example = card["path"] == "the shipped example"
    words = ["unbraid", "score", "--example" if example else card["path"]]
    words += [] if every else ["--metrics", ",".join(chosen)]
    words += ["--factors", joined(card["chosen_factors"])] if card["chosen_factors"] else []
    words += ["--unwanted", joined(unwanted)] if unwanted else []
    words += ["--units", "pca"] if units else []
    options = card.get("options", ())
    words += options
    words += ["--weights", "COLUMN"] if weighted and "--weights" not in options else []
    words += ["--groups", "COLUMN"] if grouped and "--groups" not in options else []
    words += [] if card["held_out"] is None else ["--held-out", card["held_out"]]
    words += [word for name, text in blocks.items() for word in (f"--{name.replace('_', '-')}", text)]
    words += [word for name, value in again.items() for word in (f"--{name}", value)]
    words += ["--baselines"] if with_baselines else []
    words += ["--seed", str(card["seed"]), "--html", "scores.html"]
    command = shlex.join(words)
    if options:  # of labels that no file of codes holds
        return {"command": command, "python": None}
    named = f".keep_factors({[*card['chosen_factors'], *unwanted]!r})" if card["chosen_factors"] else ""
    columns = f", columns={[*card['chosen_factors'], *unwanted]!r}" if card["chosen_factors"] else ""
    load = f"Representation.example(){named}" if example else f"Representation.load({card['path']!r}{columns})"
    python = f"import unbraid\n\nrepresentation = unbraid.{load}\ncard = unbraid.score(representation, {finish}"
    if with_baselines:
        call = f"unbraid.score(run.codes(){named}, orbits=run.objects, baselines=run.baselines(), {finish}"
        python = f"import unbraid\n\nrun = unbraid.load_run({card['path']!r})\ncard = {call}"
    return {"command": command, "python": python}


def _again(card: Card) -> dict[str, str]:
    """How rows were moved and how often, and how sure intervals are, where that was asked for."""
    nulls = (each["null"] for each in card["scored"].values())
    intervals = (each["intervals"] for each in card["scored"].values())
    shuffles = next((each.option for each in nulls if each is not None), None)
    confidence = next((f"{each.confidence:g}" for each in intervals if each is not None), None)
    return {name: value for name, value in (("null", shuffles), ("confidence", confidence)) if value is not None}
