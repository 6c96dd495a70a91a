"""Judge what the papers claim by the tables of studies here: docs/claims.json, which docs/reproductions/index.md shows.

python docs/make_claims.py                       judge all, about a minute
python docs/make_claims.py --gather FOLDER       write the table of a study that has run into docs/reproductions/results
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from effects import (
    Effect,
    Measure,
    Rows,
    best_setting_gap,
    chosen,
    difference,
    lead,
    mean,
    over_pairs,
    over_runs,
    over_settings,
    paired,
    pearson_of_pairs,
    resampled,
    within_settings,
)

from unbraid import Study

RESULTS = Path(__file__).parent / "reproductions" / "results"
FILE = Path(__file__).parent / "claims.json"


@dataclass(frozen=True)
class Claim:
    """One claim, reproduced where the whole interval lies beyond `bound` on the claimed side."""

    paper: str
    says: str
    published: str
    study: str  # the name of a file in studies/ and of a table in results/; several with + between
    effect: str  # what the number is
    measure: Measure
    above: bool = True
    bound: float = 0.0

    def found(self) -> Effect:
        """The effect in the table of the study."""
        return self.measure(table(self.study))

    def verdict(self, effect: Effect) -> str:
        """Reproduced, not reproduced, or undecided where the interval holds both, or where there is none."""
        if effect.low > self.bound:
            return "reproduced" if self.above else "not reproduced"
        if effect.high < self.bound:
            return "not reproduced" if self.above else "reproduced"
        return "undecided"


def table(study: str) -> pd.DataFrame:
    """The runs of a study, or of several."""
    return pd.concat([pd.read_csv(RESULTS / f"{name}.csv") for name in study.split("+")], ignore_index=True)


def seconds(study: str) -> float | None:
    """That its runs took in training, where its table says so."""
    runs = table(study)
    return float(runs["seconds"].sum()) if "seconds" in runs else None


UDR, TCVAE = "udr-2020-laptop", "beta-tcvae-2018-laptop"
DCI, LONG, EPOCHS = "dci-2018-laptop", "dci-2018-long-laptop", "dci-2018-epochs-laptop"
GAP = "dci-2018-zero-shot-laptop"
FLATLAND = "lsbd-flatland-small"
AIRPLANE, TURNTABLE = "lsbd-airplane-laptop", "lsbd-turntable-laptop"
SQUARE, ARROW = "lsbd-square-laptop", "lsbd-arrow-laptop"
DEPENDENT = "beta-tcvae-2018-dependent-laptop"
ROOMS = "snc-nk-2023-rooms-laptop"
SNC = f"snc-nk-2023-sprites-laptop+{ROOMS}"
SIX: Rows = {"family": ["beta_vae", "beta_tcvae", "factor_vae", "parted_vae", "weak_de"]}  # PartedVAE is two of them
BETA: Rows = {"family": "beta_vae"}
TC: Rows = {"family": "beta_tcvae"}
D_LSBD = "d_lsbd.score"


def _pairs(number: int) -> Rows:
    return {"family": "lsbd_vae", "hyper.supervision": "pairs", "hyper.pairs": number}


PATHS: Rows = {"family": "lsbd_vae", "hyper.supervision": "paths"}
VAE: Rows = {"family": "vae"}
VAE_OF_TEAPOTS: Rows = {"family": "beta_vae", "hyper.beta": 0.0625}
BETA_VAE_OF_TEAPOTS: Rows = {"family": "beta_vae", "hyper.beta": 0.375}


def beyond_pca(column: str, rows: Rows) -> Measure:
    """The mean over seeds, less what PCA has, which no seed changes."""

    def measure(frame: pd.DataFrame) -> Effect:
        pca = float(chosen(frame, {"family": "pca"})[column].iloc[0])
        return mean(column, rows)(frame.assign(**{column: frame[column] - pca}))

    return measure


def _gap(first: Rows, second: Rows, x: str, y: str) -> Measure:
    """How much lower the correlation of the settings' means is among the first runs than among the second."""

    def correlation(frame: pd.DataFrame, rows: Rows) -> float:
        means = chosen(frame, rows).groupby("setting")[[x, y]].mean()
        return float(means[x].corr(means[y]))

    return resampled(lambda frame: correlation(frame, first) - correlation(frame, second))


def _disagreement(frame: pd.DataFrame) -> float:
    """The largest gap, over runs, between the share of runs below it by the β-VAE score and that by MIG."""
    places = frame[["beta_vae_score.score", "mig.score"]].rank(pct=True)
    return float((places["beta_vae_score.score"] - places["mig.score"]).max())


def _elbo_lost(frame: pd.DataFrame) -> float:
    """ELBO of the setting of the highest mean MIG, less the highest of any setting, in nats."""
    frame = frame.assign(elbo=-frame["train.reconstruction"] - frame["elbo_terms.kl"])
    means = frame.groupby(["family", "setting"])[["elbo", "mig.score"]].mean()
    return float(means.loc[means["mig.score"].idxmax(), "elbo"] - means["elbo"].max())


def _spearman_lead(frame: pd.DataFrame) -> float:
    """Rank correlation with MIG of UDR-S, less that of UDR-L."""
    ranks = frame[["udr.score_spearman", "udr.score", "mig.score"]].rank().corr()
    return float(ranks.loc["udr.score_spearman", "mig.score"] - ranks.loc["udr.score", "mig.score"])  # pyright: ignore[reportArgumentType]


def _share_above(frame: pd.DataFrame) -> float:
    """In how many of four supervised metrics' orders, on average, UDR's best stands above a model: 0 to 1."""
    best = frame["udr.score"].idxmax()
    metrics = ["beta_vae_score.score", "factor_vae_score.score", "mig.score", "dci_lasso.disentanglement"]
    return float(
        np.mean(
            [
                (frame[each] < frame.loc[best, each]).mean() + (frame[each] == frame.loc[best, each]).mean() / 2
                for each in metrics
            ]
        )
    )


def _cost_of_dependence(frame: pd.DataFrame) -> float:
    """Highest mean MIG of a setting where positions depend on each other, less the highest where they do not."""
    dependent = frame["dataset_options"].str.contains("position_x")
    best = [frame[rows].groupby("setting")["mig_exact.score"].mean().max() for rows in (dependent, ~dependent)]
    return float(best[0] - best[1])


def _lead_of_snc(frame: pd.DataFrame) -> float:
    """How much better SNC of the two factors goes with accuracy on unseen combinations than the best older metric."""
    older = ("mig.score", "dci_lasso.disentanglement", "sap.score")
    found = {name: pearson_of_pairs(frame, name, "compositional.mlp.both") for name in ("snc.held_out", *older)}
    return found.pop("snc.held_out") - max(found.values())


CLAIMS = (
    *(
        Claim(
            "UDR 2020",
            f"UDR correlates with {what}",
            "mean over metrics .54 ± .06 (table 6)",
            UDR,
            "rank correlation over 192 runs",
            over_runs("udr.score", column),
        )
        for what, column in (
            ("the β-VAE score", "beta_vae_score.score"),
            ("the FactorVAE score", "factor_vae_score.score"),
            ("MIG", "mig.score"),
            ("DCI's disentanglement", "dci_lasso.disentanglement"),
        )
    ),
    Claim(
        "UDR 2020",
        "UDR within a setting correlates with MIG over its seeds",
        ".54 ± .06 (table 6)",
        UDR,
        "rank correlation with MIG, after subtracting the means of settings",
        within_settings("udr.score_within", "mig.score"),
    ),
    Claim(
        "UDR 2020",
        "Spearman's correlation (UDR-S) works as well as the lasso (UDR-L)",
        ".53 against .54 (table 6)",
        UDR,
        "rank correlation with MIG, UDR-S minus UDR-L",
        resampled(_spearman_lead),
        bound=-0.05,
    ),
    Claim(
        "UDR 2020",
        "five comparisons per model are enough",
        ".51 ± .07 with 5, .61 ± .01 with 45, with the β-VAE score (table 1)",
        UDR,
        "rank correlation of UDR of 5 comparisons with MIG",
        over_runs("udr.score_5", "mig.score"),
    ),
    Claim(
        "UDR 2020",
        "the model that UDR picks is better than the median one",
        "figure 3",
        UDR,
        "MIG of its pick minus the median",
        lead("udr.score", "mig.score"),
    ),
    Claim(
        "UDR 2020",
        "the model that UDR picks is better than most by four supervised metrics together",
        "figure 3",
        UDR,
        "mean share of models below its pick",
        resampled(_share_above),
        bound=0.5,
    ),
    Claim(
        "β-TCVAE 2018",
        "TC falls as β grows, in β-VAE",
        "figure 1",
        TCVAE,
        "rank correlation of β and TC over runs",
        over_runs("hyper.beta", "elbo_terms.total_correlation", BETA),
        above=False,
    ),
    Claim(
        "β-TCVAE 2018",
        "TC falls as β grows, in β-TCVAE",
        "figure 1",
        TCVAE,
        "rank correlation of β and TC over runs",
        over_runs("hyper.beta", "elbo_terms.total_correlation", TC),
        above=False,
    ),
    Claim(
        "β-TCVAE 2018",
        "mean TC correlates negatively with mean MIG in β-TCVAE",
        "−.95 (figure 1)",
        TCVAE,
        "correlation over 5 settings' means",
        over_settings("elbo_terms.total_correlation", "mig_exact.score", TC),
        above=False,
    ),
    Claim(
        "β-TCVAE 2018",
        "the correlation of TC and MIG is less negative in β-VAE than in β-TCVAE",
        "“lower”",
        TCVAE,
        "β-TCVAE's correlation minus β-VAE's",
        _gap(TC, BETA, "elbo_terms.total_correlation", "mig_exact.score"),
        above=False,
    ),
    Claim(
        "β-TCVAE 2018",
        "β-TCVAE reaches a higher MIG",
        "figure 1 c",
        TCVAE,
        "MIG of its best setting minus β-VAE's",
        best_setting_gap("mig_exact.score", TC, BETA),
    ),
    Claim(
        "β-TCVAE 2018",
        "with a large β, the codes of β-VAE lose information on the images",
        "hypothesis in section 3",
        TCVAE,
        "rank correlation of β and index-code information",
        over_runs("hyper.beta", "elbo_terms.index_code_mi", BETA),
        above=False,
    ),
    Claim(
        "β-TCVAE 2018",
        "MIG costs ELBO",
        "figure 3: best MIG at a middling ELBO",
        TCVAE,
        "ELBO of the setting of highest MIG minus the highest ELBO, nats",
        resampled(_elbo_lost),
        above=False,
    ),
    Claim(
        "β-TCVAE 2018",
        "models of a high β-VAE score can have a low MIG",
        "one above 75 % and 26 % (figure 6)",
        TCVAE,
        "largest difference of ranks, β-VAE score minus MIG",
        resampled(_disagreement),
        bound=0.49,
    ),
    Claim(
        "β-TCVAE 2018",
        "β-TCVAE reaches a higher MIG where the two positions depend on each other",
        "figure 6 of the long version: in all four ways to sample them",
        DEPENDENT,
        "MIG of its best setting minus β-VAE's",
        best_setting_gap("mig_exact.score", TC, BETA),
    ),
    Claim(
        "β-TCVAE 2018",
        "dependent positions cost MIG, in β-TCVAE too",
        "figure 6 of the long version: lower than with uniform factors",
        f"{TCVAE}+{DEPENDENT}",
        "MIG of β-TCVAE's best setting minus that with all pairs of positions",
        resampled(_cost_of_dependence, TC),
        above=False,
    ),
    *(
        Claim(
            "DCI 2018",
            f"{who} codes are more {what} than PCA's",
            f"{published}, lasso (table 1)",
            study,
            f"{letter}, lasso, minus PCA's",
            beyond_pca(f"dci_lasso.{column}", rows),
        )
        for who, study, rows, disentangled, complete in (
            ("VAE", DCI, VAE_OF_TEAPOTS, ".67 against .29", ".62 against .32"),
            ("β-VAE", EPOCHS, BETA_VAE_OF_TEAPOTS, ".66 against .29", ".59 against .32"),
            ("InfoGAN", DCI, {"family": "info_gan"}, ".75 against .29", ".72 against .32"),
        )
        for what, letter, column, published in (
            ("disentangled", "D", "disentanglement", disentangled),
            ("complete", "C", "completeness", complete),
        )
    ),
    *(
        Claim(
            "DCI 2018",
            f"by the forest, codes of a β-VAE with stronger regularisation are more {what} than PCA's",
            f"{published}, forest (table 1)",
            LONG,
            f"{letter}, forest, β = 1, minus PCA's",
            beyond_pca(f"dci_forest.{column}", {"family": "beta_vae", "hyper.beta": 1.0}),
        )
        for what, letter, column, published in (
            ("disentangled", "D", "disentanglement", ".90 against .50"),
            ("complete", "C", "completeness", ".76 against .52"),
        )
    ),
    *(
        Claim(
            "DCI 2018",
            f"PCA loses more than {who} on combinations held out of training",
            f"NRMSE .28 against {published}, forest (table 5)",
            GAP,
            "added error on held-out combinations, minus PCA's, forest",
            beyond_pca("zero_shot.forest.cost", rows),
            above=False,
        )
        for who, rows, published in (
            ("a VAE", VAE_OF_TEAPOTS, ".06"),
            ("a β-VAE", BETA_VAE_OF_TEAPOTS, ".06"),
            ("InfoGAN", {"family": "info_gan"}, ".18"),
        )
    ),
    Claim(
        "LSBD 2022",
        "512 labelled pairs make LSBD-VAE linearly disentangled on Square",
        ".000 against .634 of a VAE (table 5)",
        SQUARE,
        "D_LSBD minus that of a VAE",
        difference(D_LSBD, _pairs(512), VAE),
        above=False,
    ),
    Claim(
        "LSBD 2022",
        "50 paths make LSBD-VAE linearly disentangled on Square",
        ".005 (table 5)",
        SQUARE,
        "D_LSBD minus that of a VAE",
        difference(D_LSBD, PATHS, VAE),
        above=False,
    ),
    Claim(
        "LSBD 2022",
        "LSBD-VAE without labels is not linearly disentangled on Square",
        ".749 (table 5)",
        SQUARE,
        "D_LSBD",
        mean(D_LSBD, _pairs(0)),
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "β-VAE is not linearly disentangled on Square",
        ".732 (table 5)",
        SQUARE,
        "D_LSBD",
        mean(D_LSBD, BETA),
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "Ada-GVAE is not linearly disentangled on Square",
        ".666 (table 5)",
        SQUARE,
        "D_LSBD",
        mean(D_LSBD, {"family": "ada_gvae"}),
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "768 pairs are enough on Arrow",
        ".000 (table 6)",
        ARROW,
        "D_LSBD",
        mean(D_LSBD, _pairs(768)),
        above=False,
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "1 024 pairs are enough on Arrow",
        ".000 (table 6)",
        ARROW,
        "D_LSBD",
        mean(D_LSBD, _pairs(1024)),
        above=False,
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "50 paths are enough on Arrow",
        ".016 (table 6)",
        ARROW,
        "D_LSBD",
        mean(D_LSBD, PATHS),
        above=False,
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "768 pairs bring LSBD-VAE far below a VAE on Airplane",
        ".180 against 1.342 (table 7)",
        AIRPLANE,
        "D_LSBD minus that of a VAE",
        difference(D_LSBD, _pairs(768), VAE),
        above=False,
    ),
    Claim(
        "LSBD 2022",
        "256 pairs bring LSBD-VAE far below a VAE on Airplane",
        ".153 (table 7)",
        AIRPLANE,
        "D_LSBD minus that of a VAE",
        difference(D_LSBD, _pairs(256), VAE),
        above=False,
        bound=-0.2,
    ),
    Claim(
        "LSBD 2022",
        "labelled rotations of objects bring LSBD-VAE below a VAE",
        ".112 against .463 (table 9)",
        TURNTABLE,
        "D_LSBD, γ = 1, minus that of a VAE",
        difference(D_LSBD, {"family": "lsbd_vae", "hyper.gamma": 1.0}, VAE),
        above=False,
    ),
    Claim(
        "LSBD 2022",
        "a VAE without transformation labels is not linearly disentangled on objects",
        ".463 (table 9)",
        TURNTABLE,
        "D_LSBD",
        mean(D_LSBD, VAE),
        bound=0.05,
    ),
    Claim(
        "LSBD 2022",
        "ForwardVAE is linearly disentangled on Flatland",
        ".012 (section 7.2)",
        FLATLAND,
        "D_LSBD",
        mean(D_LSBD, {"family": "forward_vae"}),
        above=False,
        bound=0.05,
    ),
    Claim(
        "SNC and NK 2023",
        "a single code classifies worse than a perceptron on all codes",
        "all models (table 2)",
        SNC,
        "SNC minus MLP, 7 models on 2 datasets",
        paired("snc.score", "mlp_accuracy.score"),
        above=False,
    ),
    *(
        Claim(
            "SNC and NK 2023",
            f"SNC correlates with {what}",
            f"{published} (figure 14)",
            SNC,
            "correlation over means of 7 models on 2 datasets",
            over_pairs("snc.score", column),
        )
        for what, column, published in (
            ("MIG", "mig.score", ".87"),
            ("DCI's disentanglement", "dci_lasso.disentanglement", ".82"),
            ("MED", "med.score", ".75"),
            ("NK", "nk.score", ".58"),
        )
    ),
    Claim(
        "SNC and NK 2023",
        "accuracy is lower on combinations held out of training",
        "0 to .30 (table 3)",
        SNC,
        "perceptron, both factors, held out minus random split",
        paired("compositional.mlp.both", "compositional.mlp.random_both"),
        above=False,
    ),
    Claim(
        "SNC and NK 2023",
        "where models are above chance on hue and shape, they are worse on held-out combinations",
        "0 to .30 (table 3)",
        ROOMS,
        "perceptron, hue and shape, held out minus random split",
        paired("compositional.mlp.both", "compositional.mlp.random_both"),
        above=False,
    ),
    *(
        Claim(
            "SNC and NK 2023",
            f"{name} of two factors predicts accuracy on their held-out combinations",
            f"r = {alone} over six models on 3dshapes, {all_three} over 18 pairs of model and dataset (table 4)",
            ROOMS,
            "correlation over means of six models, without MTD as there",
            over_pairs(f"{name.lower()}.held_out", "compositional.mlp.both", SIX),
        )
        for name, alone, all_three in (("SNC", ".849", ".850"), ("NK", ".710", ".716"))
    ),
    Claim(
        "SNC and NK 2023",
        "SNC predicts this accuracy better than MIG, DCI's D and SAP",
        "r = .850 against .571 (MIG), .457 (D), .311 (SAP), table 4",
        ROOMS,
        "SNC's correlation minus the highest of theirs",
        resampled(_lead_of_snc, SIX),
    ),
)


def gathered(folder: Path) -> pd.DataFrame:
    """Every run of a study with its scores; where its file says how models are ranked, with UDR by several rules."""
    study = Study.load(folder)
    frame = study.results()
    if study.config.udr is None:
        return frame
    rules: dict[str, dict[str, Any]] = {
        "udr.score": {},
        "udr.score_spearman": {"similarity": "spearman"},
        "udr.score_within": {"compare": "same-hyperparameters"},
        "udr.score_paper": {"compare": "same-hyperparameters", "alpha": "cv", "informative": "kl"},
        **{f"udr.score_{number}": {"n_comparisons": number} for number in (2, 5, 10, 20, 45)},
    }
    for column, options in rules.items():
        ranking = study.rank(**options)
        frame[column] = frame["run"].map(dict(zip(ranking.runs, ranking.scores, strict=True)))
        if column == "udr.score":
            frame["udr.informative"] = frame["run"].map(dict(zip(ranking.runs, ranking.informative, strict=True)))
    return frame


def main() -> None:
    """Judge every claim, or gather the table of a study."""
    if sys.argv[1:2] == ["--gather"]:
        for folder in map(Path, sys.argv[2:]):
            name = Study.load(folder).config.name
            gathered(folder).to_csv(RESULTS / f"{name}.csv", index=False)
            print(f"wrote {RESULTS / name}.csv")
        return
    judged = []
    for claim in CLAIMS:
        effect = claim.found()
        row = {name: value for name, value in asdict(claim).items() if name not in ("measure", "above", "bound")}
        spent = seconds(claim.study)
        row |= {name: round(value, 4) for name, value in asdict(effect).items()}
        row |= {"verdict": claim.verdict(effect), "hours": None if spent is None else round(spent / 3600, 2)}
        judged.append(row)
        print(
            f"{row['verdict']:15} {effect.value:7.3f} [{effect.low:.3f}, {effect.high:.3f}] {claim.paper}: {claim.says}"
        )
    FILE.write_text(json.dumps(judged, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
