"""Codes with the factors that made them."""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arguments import (
    LONGEST_NAME,
    check_names,
    check_number,
    check_same_rows,
    check_whole,
    list_of,
)
from unbraid.base.arrays import (
    as_array,
    as_full,
    check_weights,
    column_names,
    in_columns,
    telling,
)
from unbraid.base.printable import printable
from unbraid.base.repr import Shown
from unbraid.base.suggest import suggestion
from unbraid.base.types import BoolArray, FloatArray, IntArray, Kind
from unbraid.data.code_files import (
    POSTERIOR,
    SUFFIXES,
    Arrays,
    entries_of,
    level_names,
    read_arrays,
    row_names,
    write_arrays,
)
from unbraid.data.guessing import describe_guess, guess_kind, note_on_guesses, refuse_swapped
from unbraid.data.labels import TURN, check_groups, read_labels, rows_with_labels
from unbraid.data.row_index import match_rows
from unbraid.data.space import check_names_and_kinds
from unbraid.files.tables import read_columns, split_columns
from unbraid.files.whole_files import atomic_write

Blocks = Sequence[Sequence[int | str]] | Mapping[str, Sequence[int | str]] | str
BIT = math.log(2)  # nats
INFORMATIVE = 0.01  # nats above which a latent is informative: of its signal, or of mean KL as UDR has it
NARROWEST = 0.02  # standard deviation of means up to which even a posterior of width 1 would tell nothing of them
LONGEST_NOTE = 20_000  # letters; what is longer is cut


def hardly_vary(codes: FloatArray) -> bool:
    """Whether no code of (n_samples, n_codes) has a standard deviation above .02."""
    with np.errstate(over="ignore", invalid="ignore"):  # of codes as large as 1e200
        return bool((codes.std(axis=0, dtype=float) <= NARROWEST).all())


@dataclass(frozen=True, eq=False, repr=False)
class Representation(Shown):
    """What an encoder makes of a dataset, with the factors of the dataset where they are known.

    `Representation.of` takes labels as people have them; here factors are numbers.

    Args:
        codes: (n_samples, n_codes) real, usually posterior means; any array, tensor, frame or sparse matrix. Where
            codes and whatever else has rows are pandas objects with an index, rows are matched by it, and `notes` say
            what stood in another order; all else goes by position.
        factors: (n_samples, n_factors) levels as whole numbers, or as others, which metrics read by rank; real values
            where the kind is "continuous", or "cyclic" and the values are radians. Default: none are known.
        log_variances: (n_samples, n_codes) log-variances of the posterior, in natural logarithms; optional.
        names: one per factor; default factor_0, factor_1, ...
        kinds: "categorical", "ordinal", "continuous" or "cyclic" per factor; default ordinal where a factor has at most
            50 values that repeat, else continuous.
        sizes: number of levels of each factor in the dataset, which may exceed those present; of a cyclic one, levels
            once around, one less than there are where the last is the first again (`FactorSpace.turns`); optional.
        prior_kl: (n_samples, n_codes) KL of each posterior from the model's prior, code by code, in nats, where that is
            not the standard normal; optional, and only beside log_variances.
        levels: names of the levels of each factor, of level 0 first; none where the numbers speak for themselves.
        notes: what a score card says of how the factors came about.
        code_names: one per code, such as those of neurons; default those of the columns of a frame, where they are
            text, or else none: codes are then called code 0, code 1, ...
        weights: (n_samples,) how many rows each row stands for, for the metrics that allow it; `save` refuses
            them.
        groups: (n_samples,) group of each row (trial, animal, video or session), for rows that are not independent;
            labels of any sort, kept as numbers 0, 1, ...
        code_blocks: which codes belong together, such as [[0, 1], [2]], or as text "0-1,2"; columns in no block are
            left out. With blocks `block_r2` and `block_mcc` are scored as well; all other metrics read single columns,
            and the card says so. `save` refuses blocks.
        factor_blocks: likewise by names or columns, {"position": ["x", "y"], "shape": ["shape"]}, or as text
            "position=x+y,shape". Without it, or without `code_blocks`, each column is a block.
        orbits: encodes whole objects, in every turn of each, such as `Run.objects`. It is called once a metric needs
            them (`d_lsbd`) and `codes` are those of images drawn at random, which leave gaps. `save` leaves it out.
        periods: of each factor that is angles in radians, once around in the unit of its labels (360 for degrees), in
            which figures mark its axis; 0 of others. Default: radians.

    Raises:
        ValueError: shapes disagree, an index names other rows, a kind is unknown or two codes have one name.
    """

    codes: FloatArray
    factors: FloatArray | IntArray = None  # pyright: ignore[reportAssignmentType]
    log_variances: FloatArray | None = None
    names: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    sizes: tuple[int, ...] | None = None
    prior_kl: FloatArray | None = None
    levels: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    code_names: tuple[str, ...] = ()
    weights: FloatArray | None = None
    groups: IntArray | None = None
    code_blocks: Blocks | None = None
    factor_blocks: Blocks | None = None
    orbits: "Callable[[], Representation] | None" = None
    periods: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rows = ("codes", "factors", *POSTERIOR, "weights", "groups")
        matched, notes = match_rows({name: getattr(self, name) for name in rows})
        self._set(**matched, notes=(*self._listed("notes"), *notes))
        self._set(**{name: self._listed(name) for name in ("names", "kinds", "levels", "code_names", "periods")})
        self._set(code_names=self.code_names or column_names(self.codes))
        for name in ("names", "code_names"):
            check_names(name, getattr(self, name))
        levels = tuple(tuple(_text(level, LONGEST_NAME) for level in names) for names in self.levels)
        self._set(levels=levels if any(levels) else ())
        for name in ("names", "code_names", "notes"):  # from files: nothing in them steers a terminal or breaks a page
            self._set(**{name: tuple(_text(text, LONGEST_NOTE) for text in getattr(self, name))})
        for name in ("codes", "factors", *POSTERIOR):
            if getattr(self, name) is not None or name == "codes":
                self._set(**{name: as_array(getattr(self, name))})
        if self.factors is None:
            self._set(factors=np.empty((len(self.codes) if self.codes.ndim else 0, 0)))
        self._check_arrays()
        self._describe_factors()
        if self.sizes is not None:  # whole numbers of Python, which JSON takes
            self._set(sizes=tuple(check_whole(f"sizes[{k}]", size, 0) for k, size in enumerate(self.sizes)))
        if self.weights is not None:
            self._set(weights=check_weights(self.weights, len(self.codes)))
        if self.groups is not None:
            self._set(groups=check_groups(self.groups, len(self.codes)))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _listed(self, name: str) -> tuple[Any, ...]:
        entries = getattr(self, name)
        return () if entries is None else list_of(name, entries)

    def _check_arrays(self) -> None:
        """Raises ValueError where the shapes of arrays, or names of codes, disagree."""
        if self.codes.ndim != 2 or self.factors.ndim != 2:
            raise ValueError(
                "codes must be (n_samples, n_codes) and factors (n_samples, n_factors); "
                f"got {self.codes.shape} and {self.factors.shape}"
            )
        check_same_rows(self.codes.shape, self.factors.shape)
        if self.code_names and len(self.code_names) != self.codes.shape[1]:
            raise ValueError(
                f"code_names must have one entry per code ({self.codes.shape[1]}); got {len(self.code_names)}"
            )
        if len(set(self.code_names)) < len(self.code_names):
            twice = Counter(self.code_names).most_common(1)[0][0]
            raise ValueError(f"code_names must differ from each other; {twice!r} comes twice")
        for name in POSTERIOR:
            array = getattr(self, name)
            if array is not None and array.shape != self.codes.shape:
                raise ValueError(f"{name} must have the shape of codes, {self.codes.shape}; got {array.shape}")
        if self.prior_kl is not None and self.log_variances is None:
            raise ValueError("prior_kl needs log_variances, too")

    def _describe_factors(self) -> None:
        """Names and kinds of the factors, where none are given; ValueError where what is given does not fit them."""
        n_factors = self.factors.shape[1]
        if n_factors and self.factors.dtype.kind not in "biuf":
            reads = "unbraid.Representation.of reads text, categories and dates"
            raise ValueError(f"factors must be numbers; got dtype {self.factors.dtype}. {reads}")
        if not self.names:
            self._set(names=tuple(f"factor_{k}" for k in range(n_factors)))
        if not self.kinds and self.factors.dtype.kind in "biuf":
            columns = self.factors.T.astype(float)
            kinds: tuple[Kind, ...] = tuple(guess_kind(column) for column in columns)
            guesses = list(map(describe_guess, self.names, kinds, columns))
            self._set(kinds=kinds, notes=(*self.notes, *([note_on_guesses(guesses)] if guesses else [])))
        for name in ("names", "kinds", "sizes", "levels", "periods"):
            entries = getattr(self, name)
            optional = name in ("levels", "periods")
            if entries is not None and (entries or not optional) and len(entries) != n_factors:
                raise ValueError(f"{name} must have one entry per factor ({n_factors}); got {len(entries)}")
        for column, period in enumerate(self.periods):
            check_number(f"periods[{column}]", period, least=0)
        check_names_and_kinds(self.names, self.kinds)

    def __len__(self) -> int:
        return len(self.codes)

    def code_labels(self) -> list[str]:
        """What each code is called: by its name, or code 0, code 1, ..."""
        return list(self.code_names) or [f"code {code}" for code in range(self.codes.shape[1])]

    def mean_kl(self) -> FloatArray | None:
        """(n_codes,) KL of each latent's posterior from the prior, in nats, averaged over samples.

        The prior is the standard normal unless there is `prior_kl`. None without log-variances. UDR calls a latent
        informative when this exceeds 0.01.
        """
        if self.log_variances is None:
            return None
        if self.prior_kl is not None:
            return self.prior_kl.astype(float).mean(axis=0)
        mean, log_variance = self.codes.astype(float), self.log_variances.astype(float)
        return 0.5 * (mean**2 + np.exp(log_variance) - log_variance - 1).mean(axis=0)

    def signal(self) -> FloatArray | None:
        """(n_codes,) 1/2 log(1 + Var mu / E sigma^2) in nats: what a code tells of its sample, were both Gaussian.

        From 0. A constant posterior has none, wherever it lies and however wide it is, where its KL from the prior may
        be large. None without log-variances. A ranking calls a latent informative when this exceeds 0.01.
        """
        if self.log_variances is None:
            return None
        noise = np.exp(self.log_variances.astype(float)).mean(axis=0)
        return 0.5 * np.log1p(self.codes.astype(float).var(axis=0) / np.maximum(noise, np.finfo(float).tiny))

    def informative(self) -> BoolArray | None:
        """(n_codes,) whether the `signal` of a code exceeds 0.01 nats, as rankings count; else as `signal`."""
        signal = self.signal()
        return None if signal is None else signal > INFORMATIVE

    def tells_nothing(self) -> bool:
        """Whether all codes together tell less than one bit of their sample, by the sum of `signal`.

        So it is of a collapsed model and of an untrained one: metrics read the means, whose differences are far
        smaller than the noise around them. False without log-variances, where the codes do not say so.
        """
        signal = self.signal()
        return signal is not None and bool(signal.sum() < BIT)

    def varies_little(self) -> bool:
        """Whether no code of a model without log-variances has a standard deviation above .02.

        The means of a collapsed VAE are so; so may be codes of another scale, which nothing tells apart.
        """
        return self.log_variances is None and hardly_vary(self.codes)

    def without_idle_rows(self) -> "Representation":
        """Without the rows of weight 0."""
        if self.weights is None or self.weights.all():
            return self
        return self.keep_rows(np.flatnonzero(self.weights))

    def keep_rows(self, rows: IntArray) -> "Representation":
        """These rows alone, in this order."""
        arrays = {name: getattr(self, name) for name in ("codes", "factors", "weights", "groups", *POSTERIOR)}
        selected = {name: array[rows] for name, array in arrays.items() if array is not None}
        return replace(self, sizes=self.known_sizes(), **selected)

    def known_sizes(self) -> tuple[int, ...] | None:
        """`sizes`; without them those that the rows show, where a factor goes around in steps, else None.

        Some of the rows may lack the last level, and go around as far as all of them.
        """
        whole = [bool((column == np.rint(column)).all()) for column in self.factors.T]
        around = [steps and kind == "cyclic" for steps, kind in zip(whole, self.kinds, strict=True)]
        if self.sizes is not None or not any(around):
            return self.sizes
        levels = [len(np.unique(column)) if steps else 0 for steps, column in zip(whole, self.factors.T, strict=True)]
        highest = self.factors.max(axis=0)
        return tuple(max(1, int(top) + 1) if on else n for on, top, n in zip(around, highest, levels, strict=True))

    def keep_factors(self, names: Sequence[str]) -> "Representation":
        """The same codes with these factors alone, in this order; without blocks of factors.

        Raises:
            ValueError: a name is unknown.
        """
        names = list_of("names", names, single=True)
        places = {name: place for place, name in enumerate(self.names)}
        for name in names:
            if name not in places:
                raise ValueError(f"no factor {name!r}; {suggestion(name, self.names)}")
        columns = [places[name] for name in names]
        return replace(
            self,
            factors=self.factors[:, columns],
            names=names,
            kinds=tuple(self.kinds[k] for k in columns),
            sizes=None if self.sizes is None else tuple(self.sizes[k] for k in columns),
            levels=tuple(self.levels[k] for k in columns) if self.levels else (),
            periods=tuple(self.periods[k] for k in columns) if self.periods else (),
            factor_blocks=None,
            orbits=None if (orbits := self.orbits) is None else (lambda: orbits().keep_factors(names)),
        )

    def in_label_units(self) -> FloatArray:
        """The factors (n_samples, n_factors) as numbers, angles in radians turned into the unit of their labels."""
        factors = self.factors.astype(float)
        for column, period in enumerate(self.periods):
            if period:
                factors[:, column] *= period / TURN
        return factors

    @classmethod
    def of(
        cls,
        codes: Any,
        labels: Any = None,
        *,
        names: Sequence[str] | None = None,
        kinds: Mapping[str, Kind] | Sequence[Kind] | None = None,
        sizes: Sequence[int] | None = None,
        period: Mapping[str, float] | None = None,
        missing: Any = None,
        columns: Sequence[str] | None = None,
        unwanted: str | Sequence[str] = (),
        log_variances: Any = None,
        prior_kl: Any = None,
        code_names: Sequence[str] | None = None,
        weights: Any = None,
        groups: Any = None,
        key: str | None = None,
        code_blocks: Blocks | None = None,
        factor_blocks: Blocks | None = None,
        orbits: "Callable[[], Representation] | None" = None,
        dense: bool = False,
    ) -> "Representation":
        """Codes with labels as people have them.

        Args:
            codes: (n_samples, n_codes) as for `Representation`.
            labels: a pandas or polars frame, a mapping from names to columns, or an array; of numbers, text, booleans,
                categories or dates. A row that lacks any label in use is left out, and `notes` count such rows.
            names: of the columns of an array; default factor_0, factor_1, ...
            kinds: by name, {"hue": "cyclic"}, or one for each column. Others are guessed, and `notes` say what was:
                text, booleans and categories without order are categorical; ordered categories, and numbers that are 50
                at most and repeat, ordinal; what has a period cyclic; other numbers and dates (as days) continuous.
            sizes: number of levels of each factor, where it exceeds those present.
            period: of angles, by name: {"hue": 360}. On at most 64 even steps they become levels, else radians.
            missing: a value, several, or a mapping from names to them, that stand for no label, as NaN and None do.
            columns: names of the labels to use, in this order, or of one. Default: all of an array; of a table all but
                constants, names or numbers of rows (time, ids) and names of groups (trial, animal), which a note lists,
                unless another argument names them.
            unwanted: names of labels that `score` tests apart from the others.
            log_variances, prior_kl, code_names, weights, code_blocks, factor_blocks, orbits: as for `Representation`,
                of all rows.
            groups: likewise; or the name of a column of the labels, which is no factor then.
            key: column that names the rows, in the frames (or mappings) of codes and labels both: rows are matched by
                it. Without it they are matched by the index of pandas, where both have one, or else by position.
            dense: whether sparse codes are made a full array, if it fits into memory, so that every metric can be
                scored.

        Raises:
            ValueError: shapes disagree; index or key name different rows; a name or kind is unknown; a period is none;
                a column mixes text and numbers; no row has all labels; there is no factor, or one of too many levels.

        Example:
            >>> labels = {"shape": ["heart", "square", None, "square"], "hue": [0, 90, 180, 270]}
            >>> held = Representation.of(np.eye(4), labels, period={"hue": 360})
            >>> held.kinds, held.factors.tolist(), held.levels[0]
            (('categorical', 'cyclic'), [[0.0, 0.0], [1.0, 1.0], [1.0, 3.0]], ('heart', 'square'))
            >>> held.notes[0]
            '3 of 4 rows are scored, those that lack no label (missing: shape 1)'
        """
        rows: dict[str, Any] = {"log_variances": log_variances, "prior_kl": prior_kl, "weights": weights}
        rows, notes = match_rows({"codes": codes, "labels": labels, **rows, "groups": groups}, key)
        codes, labels, groups = (rows.pop(name) for name in ("codes", "labels", "groups"))
        names_of_codes = () if code_names is None else list_of("code_names", code_names)
        unlabelled = cls(
            as_full(codes) if dense else codes, **rows, notes=notes, code_names=names_of_codes, code_blocks=code_blocks,
            factor_blocks=factor_blocks, orbits=orbits,
        )  # fmt: skip
        return with_labels(
            unlabelled, labels, groups=groups, names=names, kinds=kinds, sizes=sizes, period=period, missing=missing,
            columns=columns, unwanted=unwanted,
        )[0]  # fmt: skip

    @classmethod
    def load(cls, path: str | Path, *, columns: Sequence[str] | None = None) -> "Representation":
        """Read a representation file: .npz (never unpickled), .safetensors, .parquet, .csv, or .npy of codes alone.

        A table (.csv, .parquet) has columns code_0, code_1, ... and may have factors, as columns factor_<name>; or it
        holds codes in every column, which keep their names. An .npz or .safetensors of a single array holds the codes,
        whatever it is called; an .npz of scipy.sparse.save_npz holds sparse codes.

        In an .npz without `codes`, one of mu, mean, means and z stands for them, and logvar, log_var or logvars for
        log_variances. Beside `codes` and `factors`, it may hold what `save` writes there: `factor_names`,
        `factor_kinds`, `factor_sizes`, `factor_levels` and `factor_periods`; `code_names`, `groups`, `log_variances`,
        `prior_kl` and `notes`. Arrays of other names are left unread.

        Args:
            path: of the file.
            columns: names of the factors to use, in this order, or of one; default all. A row that lacks a label of any
                of them is left out, and `notes` count such rows.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not what its name says, or lacks `codes`; the message names it. There is no such
                factor.
        """
        columns = None if columns is None else list_of("columns", columns, single=True)
        representation, every = load_codes(path, columns)
        for name in columns or ():
            if name not in every:
                raise ValueError(f"{path}: no factor {name!r}; {suggestion(name, every)}")
        return representation

    @classmethod
    def _of_file(
        cls, path: Path, arrays: Arrays, columns: Sequence[str] | None
    ) -> tuple["Representation", tuple[str, ...]]:
        if "codes" not in arrays:
            raise ValueError(f"{path}: no array 'codes'; found {', '.join(arrays) or 'nothing'}")
        try:
            code_names = entries_of(arrays, "code_names", "U")
            codes, blocks = as_array(arrays["codes"]), None
            if codes.ndim == 3:
                codes, blocks = in_columns(codes)
            arrays = {**arrays, "codes": codes}
            if "labels" in arrays:
                every = tuple(arrays["labels"])
                chosen = _among(columns, every)
                representation = cls.of(
                    codes, None if chosen == [] else arrays["labels"], columns=chosen or every,
                    code_names=code_names, groups=arrays.get("groups"), code_blocks=blocks,
                    log_variances=arrays.get("log_variances"), prior_kl=arrays.get("prior_kl"),
                )  # fmt: skip
                return representation, every
            names = entries_of(arrays, "factor_names", "U")
            arrays, lacking = _without_gaps(arrays, names, columns)
            representation = cls(
                codes=arrays["codes"],
                **{name: arrays.get(name) for name in ("factors", *POSTERIOR, "groups")},  # pyright: ignore[reportArgumentType]
                names=names,
                kinds=entries_of(arrays, "factor_kinds", "U"),
                sizes=entries_of(arrays, "factor_sizes", "iu") or None,
                levels=level_names(arrays.get("factor_levels")),
                periods=entries_of(arrays, "factor_periods", "fiu"),
                notes=(*lacking, *entries_of(arrays, "notes", "U")),
                code_names=code_names,
                code_blocks=blocks,
            )
            chosen = _among(columns, representation.names)
            return representation if chosen is None else representation.keep_factors(chosen), representation.names
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write a representation file; the suffix decides the format. Whole or not at all.

        Raises:
            ValueError: the suffix is none of .npz, .safetensors, .parquet; or there are weights or blocks, which no
                file holds.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            raise ValueError(f"{path}: a representation file ends in {', '.join(SUFFIXES)}")
        for name, contents in (("weights", "weights of rows"), ("code_blocks", "blocks"), ("factor_blocks", "blocks")):
            if getattr(self, name) is not None:
                raise ValueError(f"{path}: a file holds no {contents}; save without them, and give them when scoring")
        with atomic_write(path) as temporary:
            write_arrays(_arrays(self), _described(self), temporary, suffix)

    @classmethod
    def example(cls) -> "Representation":
        """The shipped codes of a β-TCVAE trained on dSprites: 10 000 samples, 10 codes, 5 factors."""
        return cls.load(example_path())


def with_labels(
    unlabelled: Representation, labels: Any, *, groups: Any = None, sizes: Any = None, **reading: Any
) -> tuple[Representation, BoolArray]:
    """Codes with labels as people have them, and which rows (n_rows,) these leave: those that lack no label.

    Args:
        unlabelled: the codes of all rows, and all else but groups that has a row each.
        labels, groups, sizes: as for `Representation.of`.
        reading: other arguments of `read_labels`.
    """
    if labels is None:
        if isinstance(groups, str):
            raise ValueError(f"groups={groups!r} names a column of labels, and there are none")
        return replace(unlabelled, groups=groups), np.ones(len(unlabelled), dtype=bool)
    read = read_labels(labels, groups=groups, sizes=sizes, **{"shape": unlabelled.codes.shape, **reading})
    labelled = unlabelled if read.used.all() else unlabelled.keep_rows(np.flatnonzero(read.used))
    if reading["kinds"] is None and reading["period"] is None and not telling(read.names):
        refuse_swapped(labelled.codes, read.factors)
    labelled = replace(
        labelled, factors=read.factors, names=read.names, kinds=read.kinds, levels=read.levels, groups=read.groups,
        sizes=read.sizes if sizes is None else list_of("sizes", sizes), notes=(*unlabelled.notes, *read.notes),
        periods=read.periods,
    )  # fmt: skip
    return labelled, read.used


def _among(columns: Sequence[str] | None, names: Collection[str]) -> list[str] | None:
    """Those of the columns asked for that are there; None: all are."""
    return None if columns is None else [name for name in dict.fromkeys(columns) if name in names]


def _without_gaps(arrays: Arrays, names: tuple[Any, ...], columns: Sequence[str] | None) -> tuple[Arrays, list[str]]:
    """The rows of a file whose factors in use hold no NaN, as labels in memory are read, and the note on them."""
    factors = np.asarray(() if arrays.get("factors") is None else arrays["factors"])
    if factors.ndim != 2 or factors.dtype.kind != "f" or not np.isnan(factors).any():
        return arrays, []
    by_row = [name for name in ("codes", "factors", *POSTERIOR, "groups") if arrays.get(name) is not None]
    names = names or tuple(f"factor_{k}" for k in range(factors.shape[1]))
    by_name = {name: np.asarray(arrays[name]) for name in by_row}
    unsound = any(array.shape[:1] != factors.shape[:1] for array in by_name.values())
    if unsound or len({*names}) != factors.shape[1] or len(names) != factors.shape[1]:
        return arrays, []  # the constructor says what is wrong
    chosen = _among(columns, names)
    places = [place for place, name in enumerate(names) if chosen is None or name in chosen]
    if not np.isnan(factors[:, places]).any():
        return arrays, []
    used, notes = rows_with_labels(factors[:, places], [names[place] for place in places])
    return {**arrays, **{name: array[used] for name, array in by_name.items()}}, notes


def write_codes(representation: Representation, path: Path) -> None:
    """Write the .safetensors file of a folder that counts only once it has its name; all others take `save`."""
    write_arrays(_arrays(representation), _described(representation), path, ".safetensors")


def example_path() -> Path:
    return Path(__file__).parent / "examples" / "dsprites_btcvae_codes.npz"


def load_codes(path: str | Path, columns: Sequence[str] | None) -> tuple[Representation, tuple[str, ...]]:
    """As `Representation.load` without a check of the columns, and the names of all factors of the file."""
    path = Path(path)
    return Representation._of_file(path, read_arrays(path), columns)


def read_table(path: Path, key: str | None = None) -> tuple[Representation, Any]:
    """The codes of a .csv or .parquet file, without its factors, and the names of their rows.

    These are in the column `key`, or are the index of pandas; None where there is neither.

    Raises:
        FileNotFoundError, ValueError: as `Representation.load`.
    """
    columns = dict(read_columns(path, index=True))
    names = row_names(columns, key)
    numbers = {name: np.asarray(column) for name, column in columns.items()}
    try:
        arrays = split_columns(numbers, list(numbers))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return Representation._of_file(path, arrays, ())[0], names


def _text(name: Any, longest: int) -> str:
    return printable(name if len(name) <= longest else f"{name[: longest - 1]}…") if isinstance(name, str) else name


def _described(representation: Representation) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "factor_sizes": None if representation.sizes is None else list(representation.sizes),
        "factor_levels": json.dumps(representation.levels) if representation.levels else None,
        "factor_periods": list(map(float, representation.periods)) or None,
        "code_names": list(representation.code_names) or None,
        "notes": list(representation.notes) or None,
    }
    described = {"factor_names": list(representation.names), "factor_kinds": list(representation.kinds)}
    return described | {name: value for name, value in optional.items() if value is not None}


def _arrays(representation: Representation) -> dict[str, FloatArray | IntArray]:
    arrays = {name: getattr(representation, name) for name in ("codes", "factors", *POSTERIOR, "groups")}
    return {name: array for name, array in arrays.items() if array is not None}
