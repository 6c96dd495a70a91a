"""AnnData: the embeddings in `obsm`, scored against columns of `obs`; in memory, and in .h5ad files."""

from collections.abc import Mapping, Sequence
from typing import Any

from unbraid.base.arguments import check_entries
from unbraid.base.types import DataFrame
from unbraid.data.h5ad import check_names
from unbraid.files.trust import trusting
from unbraid.integrations.single_metric import Kinds
from unbraid.metrics import Metric
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.score import Named, choose
from unbraid.scoring.score import score as score_codes
from unbraid.scoring.unwanted import named

__all__ = ["Benchmarker", "score"]


def score(
    adata: Any,
    obsm_key: str,
    factors: str | Sequence[str],
    *,
    unwanted: str | Sequence[str] = (),
    kinds: Kinds | None = None,
    metrics: Named | Sequence[Named] | None = None,
    key_added: str = "unbraid",
    **options: Any,
) -> ScoreCard:
    """Score an embedding of the cells against what is known of them.

    Args:
        adata: (n_cells, n_genes) AnnData; `uns` alone is changed.
        obsm_key: of the embedding, such as "X_scVI": (n_cells, n_codes) array, frame or sparse matrix.
        factors: columns of `obs`, such as ["cell_type", "dosage"]: text, categories, booleans, dates or numbers. Cells
            that lack any of them are left out.
        unwanted: columns of `obs` that the embedding should not tell of, such as "batch", as for `unbraid.score`. Cells
            that lack any of these are left out as well.
        kinds: "categorical", "ordinal", "continuous" or "cyclic" per factor, by name or in their order; others are
            guessed, and a note says so.
        metrics: as for `unbraid.score`; default the standard ones.
        key_added: `adata.uns[key_added][obsm_key]` then holds `scores`, a frame with one row per number, and `card`,
            all of it as JSON; both outlive `write_h5ad`.
        **options: as for `unbraid.score`, such as null, confidence or seed; `groups` and `weights` may name columns of
            `obs`, or be arrays (n_cells,).

    Returns:
        ScoreCard.

    Raises:
        ValueError: no such embedding or column, unsound input, or `uns[key_added]` holds something else.
    """
    names, unwanted_names = list(named(factors, "factors")), named(unwanted)
    columns = {name: options[name] for name in ("groups", "weights") if isinstance(options.get(name), str)}
    check_names("adata.obsm", [obsm_key], adata.obsm)
    check_names("adata.obs", [*names, *unwanted_names, *columns.values()], adata.obs)
    if kinds is not None and not isinstance(kinds, Mapping):
        check_entries("kinds", kinds, len(names))
        kinds = dict(zip(names, kinds, strict=True))
    entries = adata.uns.get(key_added, {})
    if not isinstance(entries, Mapping):
        raise ValueError(f"adata.uns[{key_added!r}] holds a {type(entries).__name__}; give another key_added")
    options |= {name: adata.obs[column] for name, column in columns.items()}
    metric_names = "standard" if metrics is None else metrics
    labels = adata.obs[[*dict.fromkeys([*names, *unwanted_names])]]
    card = score_codes(
        adata.obsm[obsm_key],
        labels,
        columns=names,
        unwanted=unwanted_names,
        kinds=kinds,
        metrics=metric_names,
        **options,
    )
    added = {"scores": card.to_frame(), "card": card.text("card.json")}
    adata.uns[key_added] = {**entries, obsm_key: added}
    return card


class Benchmarker:
    """Several embeddings of the same cells, scored alike; used as the Benchmarker of scib-metrics is.

    Args:
        adata: (n_cells, n_genes) AnnData.
        factors: columns of `obs` that embeddings should tell of.
        embedding_obsm_keys: of the embeddings.
        unwanted: columns of `obs` that they should not tell of, such as "batch": each has a column `unwanted(batch)`,
            of which lower is better.
        kinds, metrics, key_added: as for `score`.
        **options: as for `score`.

    Example:
        `Benchmarker(adata, ["cell_type"], ["X_pca", "X_scVI"], unwanted="batch").benchmark().get_results()`
    """

    def __init__(
        self,
        adata: Any,
        factors: str | Sequence[str],
        embedding_obsm_keys: str | Sequence[str],
        *,
        unwanted: str | Sequence[str] = (),
        kinds: Kinds | None = None,
        metrics: Named | Sequence[Named] | None = None,
        key_added: str = "unbraid",
        **options: Any,
    ) -> None:
        self._adata, self._factors = adata, factors
        self._embeddings = named(embedding_obsm_keys, "embedding_obsm_keys")
        if not self._embeddings:
            raise ValueError(f"embedding_obsm_keys is empty; adata.obsm has {', '.join(adata.obsm) or 'nothing'}")
        arguments = {"unwanted": unwanted, "kinds": kinds, "metrics": metrics, "key_added": key_added}
        self._options: dict[str, Any] = {**arguments, **options}
        self.cards: dict[str, ScoreCard] = {}
        check_names("adata.obsm", self._embeddings, adata.obsm)
        check_names("adata.obs", [*named(factors, "factors"), *named(unwanted)], adata.obs)
        choose(trusting("standard" if metrics is None else metrics))  # before the first embedding has taken its time

    def benchmark(self) -> "Benchmarker":
        """Score every embedding: `cards` holds the cards by embedding.

        Raises:
            ValueError: as `score` does; the message names the embedding.
        """
        for key in self._embeddings:
            try:
                self.cards[key] = score(self._adata, key, self._factors, **self._options)
            except ValueError as error:
                raise ValueError(f"embedding {key!r}: {error}") from error
        return self

    def get_results(self) -> DataFrame:
        """A frame with a row for each embedding and a column for each metric, NaN where one was skipped.

        A metric that was skipped for every embedding has no column. Columns of unwanted factors are called
        `unwanted(batch)`. `attrs["lower_is_better"]` lists the columns of which that holds.

        Raises:
            ValueError: nothing was scored yet.
        """
        import pandas

        if not self.cards:
            raise ValueError("nothing was scored yet: call benchmark() first")
        rows = {
            key: {name: scored.headline for name, scored in card.scored.items()} for key, card in self.cards.items()
        }
        rows_of: dict[str, Metric] = {
            name: scored.metric for card in self.cards.values() for name, scored in card.scored.items()
        }
        results = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("Embedding")
        results.attrs["lower_is_better"] = [name for name, metric in rows_of.items() if not metric.higher_is_better]
        return results
