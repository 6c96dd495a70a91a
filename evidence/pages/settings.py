"""What every setting of a study scores, from its table in docs/reproductions/results."""

import re
from textwrap import fill

import pandas as pd

from unbraid.scoring.result_columns import agreement_columns
from unbraid.scoring.setting_names import with_brief_settings

from .texts import ROOT, escaped, table

RESULTS = ROOT / "docs" / "reproductions" / "results"
FURTHER = (  # beside headlines
    "udr.score_paper", "udr.informative", "elbo_terms.index_code_mi", "elbo_terms.kl", "compositional.mlp.random_both",
)  # fmt: skip


def of_settings(study: str) -> str:
    """A row for each setting: the mean and standard deviation over its finished runs, for each metric."""
    runs = pd.read_csv(RESULTS / f"{study}.csv")
    runs = with_brief_settings(runs[runs["state"].isin(["finished", "held-out models wait"])])
    known = [name for name in agreement_columns(runs) if not name.startswith("hyper.")]
    shown = [name for name in known if not name.startswith("compositional.") or name.endswith(".both")]
    shown += [name for name in FURTHER if name in runs]
    rows = [
        [f"`{family}`", escaped(setting) or "defaults", str(len(own)), *(of_column(own[name]) for name in shown)]
        for (family, setting), own in runs.groupby(["family", "setting"], sort=False)
    ]
    head = " | ".join(["family", "setting", "runs", *(name.removesuffix(".score") for name in shown)])
    commits = ", ".join(f"`{each[:8]}`" for each in dict.fromkeys(runs["commit"].astype(str)))
    hours = runs["seconds"].median() * len(runs) / 3600
    counted = f"Means (standard deviations) over {len(runs)} runs; [every run](results/{study}.csv)."
    made = fill(f"Code of commit {commits}; {hours:.1f} core hours of training.", 100)
    return f"{table(head, 'llr' + 'r' * len(shown), rows)}\n\n{counted}\n{made}"


def of_column(values: "pd.Series[float]") -> str:
    """Mean (standard deviation), where there are several."""
    known = values.dropna()
    if known.empty:
        return "–"
    mean = f"{known.mean():.3g}" if abs(known.mean()) >= 10 else f"{known.mean():.3f}".replace("0.", ".", 1)
    return f"{mean} ({known.std():.2f})".replace("(0.", "(.") if len(known) > 1 else mean


def asked_for(text: str, mark: str) -> dict[str, str]:
    """The tables that a page has places for, by what is said in their marks."""
    before, after = map(re.escape, mark.split("{}"))
    return {
        f"settings of {study}": of_settings(study) for study in re.findall(f"{before}settings of (.+?){after}", text)
    }
