"""The table of metrics: the one source for the command line, the JSON, the documentation and the tests."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from unbraid.metrics._shared.chance import Chance, even_guess, nought, one
from unbraid.metrics._shared.inputs import OfParts
from unbraid.metrics._shared.resampling import Resampling
from unbraid.metrics.accuracy import linear_accuracy, linear_of_noise, mlp_accuracy, mlp_of_noise
from unbraid.metrics.amari import amari, amari_of_parts
from unbraid.metrics.beta_vae_score import beta_vae_score
from unbraid.metrics.blocks import block_mcc, block_r2
from unbraid.metrics.d_lsbd import d_lsbd, d_lsbd_of_noise
from unbraid.metrics.dci_boosted import dci_boosted
from unbraid.metrics.dci_es import dci_es
from unbraid.metrics.dci_forest import dci_forest
from unbraid.metrics.dci_lasso import dci_lasso, dci_lasso_of_parts
from unbraid.metrics.dcimig import dcimig, dcimig_of_noise
from unbraid.metrics.elbo_terms import elbo_terms
from unbraid.metrics.explicitness import explicitness, explicitness_of_noise
from unbraid.metrics.factor_leakage import factor_leakage, leakage_of_noise
from unbraid.metrics.factor_vae_score import factor_vae_score
from unbraid.metrics.factorised_support import factorised_support
from unbraid.metrics.independence_score import independence_of_noise, independence_score
from unbraid.metrics.infomec import infomec
from unbraid.metrics.irs import irs, irs_of_noise, irs_of_parts
from unbraid.metrics.jemmig import jemmig, jemmig_of_noise
from unbraid.metrics.mcc import mcc, mcc_of_noise
from unbraid.metrics.med import med, med_of_noise
from unbraid.metrics.mig import mig, mig_of_noise
from unbraid.metrics.mig_exact import mig_exact
from unbraid.metrics.mig_sup import mig_sup, mig_sup_of_noise
from unbraid.metrics.modularity import modularity, modularity_of_noise
from unbraid.metrics.nk import nk, nk_of_noise
from unbraid.metrics.omes import omes
from unbraid.metrics.r2 import r2, r2_of_noise
from unbraid.metrics.sap import sap, sap_of_noise, sap_of_parts
from unbraid.metrics.snc import snc, snc_of_noise, snc_of_parts
from unbraid.metrics.tad import tad
from unbraid.metrics.tmex import tmex
from unbraid.metrics.udr import udr
from unbraid.metrics.zero_shot import zero_shot

HALVES = Resampling()
THIRDS = Resampling(one_in=3)  # where bins reach to the extremes, of which halves lose too many
FIFTHS = Resampling(one_in=5)  # the same, and where half of the rows tell too much less than all
EXTREME = Resampling(one_in=5, freedom=3)  # the same, where so few rows decide that they hardly tell how far they stray
UNCHECKED_HALVES = Resampling(checked=False)
FEW_UNCHECKED_HALVES = Resampling(times=20, checked=False)  # of what is trained anew each time
Claim: TypeAlias = Literal["modularity", "compactness", "alignment", "explicitness"]
DCI_CLAIMS: Mapping[str, tuple[Claim, ...]] = {"disentanglement": ("modularity",), "completeness": ("compactness",)}
GRID = "rows drawn anew leave gaps in the grid that it needs"


@dataclass(frozen=True)
class Metric:
    """One row: how to call a metric, how to read its headline value, and which laws it obeys."""

    function: Callable[..., Any]
    title: str
    headline: str  # the field of the Result that is quoted
    best: float  # the headline value of a perfect code
    higher_is_better: bool
    range: tuple[float, float]  # of the headline; infinities where it is unbounded
    means: str  # one line: what the number says
    misses: str  # one line: what it does not see
    source: str  # paper and equation
    chance: Chance | None = None  # what independent noise scores; None where only shuffled rows can tell
    strays: float = 0.05  # and 4 spreads: how far noise strays from that, unless a note says that it cannot be read
    version: int = 1  # raised whenever the same input gives another number
    needs: str = ""  # what it needs beyond codes and factors, as a phrase for "skipped"
    stochastic: bool = False  # depends on the seed
    # Changes of the codes that leave the headline as it is; "dead" appends a constant code.
    invariant_to: frozenset[str] = frozenset({"permute", "flip", "scale", "dead"})
    tolerance: float = 1e-9  # of those invariances; for trained probes their seed spread
    aligned: bool = True  # claims axis alignment: perfect > noisy > rotated > random
    linear: bool = True  # cost grows linearly with the number of samples
    standard: bool = True  # scored where none is named; others answer a rarer question, or take long
    interval: Resampling | str = UNCHECKED_HALVES  # how one is found, or why there is none
    question: str = ""  # that it answers, a key of QUESTIONS
    # What each value says of the codes, by which `unbraid.stress` judges it; higher is better of all but the headline.
    claims: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict, hash=False)
    binary: bool = False  # reads attributes of two values only
    whole_objects: bool = False  # judges every turn of an object, which images drawn at random do not hold
    of_parts: OfParts | None = None  # a quicker way to the numbers of many parts

    @property
    def needs_factors(self) -> bool:
        """Whether it says nothing about codes alone."""
        factors = inspect.signature(self.function).parameters.get("factors")
        return factors is None or factors.default is not None


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "mig": Metric(
            mig,
            title="Mutual information gap",
            question="own_code",
            headline="score",
            claims={"score": ("compactness",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=mig_of_noise,
            means="How much more the best code knows about a factor than the second best does.",
            misses="Cannot see information that only several codes carry together; two factors may share one code.",
            source="Chen et al. 2018, eq. 4; Duan et al. 2020 (UDR), eq. 14",
            version=2,
            strays=0.01,
            interval=HALVES,
        ),
        "mig_exact": Metric(
            mig_exact,
            title="Mutual information gap, exact",
            question="own_code",
            headline="score",
            claims={"score": ("compactness",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=nought,
            means="How much more the posterior of the best latent tells about a factor than that of the second best.",
            misses="Cannot see information that only several latents carry together; sharp posteriors over few rows "
            "look informed.",
            source="Chen et al. 2018, eq. 4 with eq. 8 and section 5.5",
            needs="needs the log-variances of the posterior",
            stochastic=True,
            tolerance=0.01,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "dci_lasso": Metric(
            dci_lasso,
            title="DCI, lasso",
            question="one_factor",
            headline="disentanglement",
            claims=DCI_CLAIMS,
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=nought,
            means="How nearly each code serves one factor only, by the weights of linear regression.",
            misses="Sees linear relations only; a cyclic factor is never read out whole by a line.",
            source="Eastwood & Williams 2018, sections 2 and 4.3",
            version=2,
            stochastic=True,
            tolerance=1e-6,
            interval=FIFTHS,
            of_parts=dci_lasso_of_parts,
        ),
        "dci_forest": Metric(
            dci_forest,
            title="DCI, random forest",
            question="one_factor",
            headline="disentanglement",
            claims=DCI_CLAIMS,
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=nought,
            means="How nearly each code serves one factor only, by the splits of random forests.",
            misses="A factor that can barely be predicted still hands out its full share of importance.",
            source="Eastwood & Williams 2018, sections 2 and 4.3",
            version=3,
            stochastic=True,
            tolerance=0.03,
            linear=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "dci_boosted": Metric(
            dci_boosted,
            title="DCI, boosted trees",
            question="one_factor",
            headline="disentanglement",
            claims=DCI_CLAIMS,
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=nought,
            means="How nearly each code serves one factor only, by boosted trees, as in most published tables.",
            misses="Grows with the number of rows; trees of depth 3 fit noise in every code, which lowers good scores.",
            source="Eastwood & Williams 2018, section 2; Locatello et al. 2019 (disentanglement_lib)",
            version=2,
            stochastic=True,
            tolerance=0.01,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "med": Metric(
            med,
            title="Entropy disentanglement by mutual information",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=med_of_noise,
            means="How nearly each code carries information on one factor only.",
            misses="Cannot see information that only several codes carry together; factors of many levels weigh more.",
            source="Cao et al. 2022; Mahon et al. 2023 (SNC/NK), table 1",
            version=2,
            strays=0.01,
            interval=FIFTHS,
        ),
        "sap": Metric(
            sap,
            title="Separated attribute predictability",
            question="own_code",
            headline="score",
            claims={"score": ("compactness",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=sap_of_noise,
            means="How much better the best code alone predicts a factor than the second best does.",
            misses="Sees straight lines only; two factors may share one code; an SVM on one code misses middle levels.",
            source="Kumar et al. 2018, section 3; Mahon et al. 2023 (SNC/NK), section 2",
            version=2,
            stochastic=True,
            interval=HALVES,
            of_parts=sap_of_parts,
        ),
        "snc": Metric(
            snc,
            title="Single-neuron classification",
            question="own_code",
            headline="score",
            claims={"score": ("alignment",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=snc_of_noise,
            means="How well each factor's own code, cut into intervals, names the factor's level.",
            misses="Does not see whether other codes tell the same; a level in several intervals of its code.",
            source="Mahon et al. 2023 (SNC/NK), eq. 2-4",
            version=3,
            stochastic=True,
            interval=HALVES,
            of_parts=snc_of_parts,
        ),
        "nk": Metric(
            nk,
            title="Neuron knockout",
            question="needed",
            headline="score",
            claims={"score": ("compactness", "alignment")},
            best=1.0,
            higher_is_better=True,
            range=(-1.0, 1.0),
            chance=nk_of_noise,
            means="How much accuracy a perceptron on all codes loses without the factor's own code.",
            misses="Near 0 both when the codes tell nothing and when they tell everything twice.",
            source="Mahon et al. 2023 (SNC/NK), section 4.3",
            version=5,
            stochastic=True,
            tolerance=0.03,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "modularity": Metric(
            modularity,
            title="Modularity",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=modularity_of_noise,
            means="How far the information in each code is about one factor only, averaged over codes.",
            misses="Whether all factors are known. Noise codes score high, so a rotated code can beat a perfect one "
            "beside noise.",
            source="Ridgeway & Mozer 2018, section 2",
            version=2,
            strays=0.01,
            aligned=False,
            interval=THIRDS,
        ),
        "irs": Metric(
            irs,
            title="Interventional robustness score",
            question="changes",
            headline="score",
            claims={"score": ("modularity",)},
            best=1.0,
            higher_is_better=True,
            range=(-math.inf, 1.0),
            chance=irs_of_noise,
            means="How little each code moves when every factor but its own changes.",
            misses="Noise scores far above 0, not far below a rotated code. Codes of large spread count most.",
            source="Suter et al. 2019, section 4",
            version=2,
            invariant_to=frozenset({"permute", "flip", "dead"}),
            aligned=False,
            interval=EXTREME,
            of_parts=irs_of_parts,
        ),
        "factor_leakage": Metric(
            factor_leakage,
            title="Factor leakage",
            question="own_code",
            headline="nm_auc",
            claims={"nm_auc": ("compactness",)},
            best=0.0,
            higher_is_better=False,
            range=(0.0, 1.0),
            chance=leakage_of_noise,
            means="How much codes other than the best know about each factor, relative to the best.",
            misses="A factor that rightly takes two codes, as a cyclic one does, counts as leaking.",
            source="Painter et al. 2020; definition as in the authors' code",
            version=2,
            strays=0.01,
            invariant_to=frozenset({"permute", "flip", "scale"}),  # it averages over all codes
            interval=HALVES,
        ),
        "amari": Metric(
            amari,
            title="Amari distance",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity", "compactness")},
            best=0.0,
            higher_is_better=False,
            range=(0.0, 1.0),
            chance=one,
            means="How far the weights of linear regression are from one code per factor and one factor per code.",
            misses="Sees linear relations only; a strong code beside a weak one for the same factor costs little.",
            source="Eastwood & Williams 2018, eq. 1; Yang & Amari 1997, section 6.1",
            version=2,
            stochastic=True,
            tolerance=1e-6,
            interval=FIFTHS,
            of_parts=amari_of_parts,
        ),
        "explicitness": Metric(
            explicitness,
            title="Explicitness",
            question="told",
            headline="score",
            claims={"score": ("explicitness",)},
            best=1.0,
            higher_is_better=True,
            range=(-1.0, 1.0),
            chance=explicitness_of_noise,
            means="How well a line through all codes tells each level of a factor from the other levels.",
            misses="Blind to rotation; one code cannot tell its middle levels by a line, so perfect codes of n steps "
            "reach about 1/2.",
            source="Ridgeway & Mozer 2018, section 3",
            version=2,
            stochastic=True,
            tolerance=1e-4,
            aligned=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "linear_accuracy": Metric(
            linear_accuracy,
            title="Accuracy of a linear head",
            question="told",
            headline="score",
            claims={"score": ("explicitness",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=linear_of_noise,
            means="How well a linear classifier on all codes names each factor's level, above chance.",
            misses="Blind to rotation; noise scores above 0 where classes are uneven, and on few rows.",
            source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
            version=3,
            stochastic=True,
            tolerance=2e-3,
            aligned=False,
            linear=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "mlp_accuracy": Metric(
            mlp_accuracy,
            title="Accuracy of a perceptron head",
            question="told",
            headline="score",
            claims={"score": ("explicitness",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=mlp_of_noise,
            means="How well a perceptron on all codes names each factor's level, above chance.",
            misses="Blind to every tangle that a perceptron can undo; noise scores above 0 where classes are uneven.",
            source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
            version=3,
            stochastic=True,
            tolerance=0.02,
            aligned=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "zero_shot": Metric(
            zero_shot,
            title="Zero-shot error",
            question="unseen",
            headline="score",
            claims={"score": ("explicitness",)},
            best=0.0,
            higher_is_better=False,
            range=(0.0, math.inf),
            means="How far off linear regression is on combinations of factors that were kept out of its training.",
            misses="Tests the regressor, unless the encoder, too, was trained without the gap.",
            source="Eastwood & Williams 2018, appendix B.2",
            needs="needs a gap: a predicate over the factors",
            version=2,
            stochastic=True,
            tolerance=1e-3,
            aligned=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "beta_vae_score": Metric(
            beta_vae_score,
            title="Beta-VAE score",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=even_guess,
            means="How often a linear classifier tells, from how far codes differ, which factor sample pairs share.",
            misses="Saturates: codes that mix factors or lack one can also score 1. Depends on the scale of codes.",
            source="Higgins et al. 2017; Duan et al. 2020 (UDR), supplement",
            version=2,
            stochastic=True,
            invariant_to=frozenset({"permute", "flip", "dead"}),
            tolerance=1e-3,
            aligned=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "factor_vae_score": Metric(
            factor_vae_score,
            title="FactorVAE score",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=even_guess,
            strays=0.06,
            means="How often the code that varies least tells which factor was held fixed.",
            misses="Saturates: a rotated code can also score 1. Codes of variance below 0.05 are ignored.",
            source="Kim & Mnih 2018; Duan et al. 2020 (UDR), supplement",
            version=2,
            stochastic=True,
            invariant_to=frozenset({"permute", "flip", "dead"}),
            aligned=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "elbo_terms": Metric(
            elbo_terms,
            title="Parts of the ELBO's KL term",
            question="independent",
            headline="total_correlation",
            best=0.0,
            higher_is_better=False,
            range=(0.0, math.inf),
            chance=nought,
            strays=0.06,
            means="How far the codes are from being independent of each other, in nats, over all posteriors together.",
            misses="Independent is not informative: 0 also for codes that know nothing; grows as posteriors sharpen.",
            source="Chen et al. 2018, eq. 1",
            needs="needs the log-variances of the posterior",
            stochastic=True,
            invariant_to=frozenset({"permute", "flip"}),
            tolerance=0.05,
            aligned=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "d_lsbd": Metric(
            d_lsbd,
            title="Linear symmetry-based disentanglement",
            question="symmetry",
            headline="score",
            best=0.0,
            higher_is_better=False,
            range=(0.0, 1.0),
            chance=d_lsbd_of_noise,
            means="How far a step around a cyclic factor is from a rotation in a plane of the codes.",
            misses="Cannot see variance outside that plane, nor that two factors share one; the result holds both, and "
            "on which of three scales in use it is.",
            source="Tonnaer et al. 2022 (LSBD), eq. 8-10, appendices C and E",
            needs="needs at least one cyclic factor, and rows that fill the grid of the cyclic factors",
            invariant_to=frozenset({"permute", "flip", "dead"}),
            aligned=False,
            whole_objects=True,
            version=3,
            interval=GRID,
        ),
        "independence_score": Metric(
            independence_score,
            title="Independence score",
            question="symmetry",
            chance=independence_of_noise,
            headline="score",
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            means="How orthogonal the directions are in which steps along different factors move the codes.",
            misses="Noise scores high when there are many codes. Does not ask whether a step is a rotation.",
            source="Painter et al. 2020",
            needs="needs two cyclic or ordinal factors along which rows have neighbours",
            invariant_to=frozenset({"permute", "flip", "dead"}),
            aligned=False,
            linear=False,
            version=3,
            interval=GRID,
        ),
        "mcc": Metric(
            mcc,
            title="Mean correlation coefficient",
            question="identified",
            headline="score",
            claims={"score": ("alignment",)},
            best=1.0,
            higher_is_better=True,
            range=(-1.0, 1.0),
            chance=mcc_of_noise,
            means="How well each factor correlates with a code of its own, on rows that took no part in the matching.",
            misses="Whether other codes tell the same; straight lines only: no code reads an unordered factor whole.",
            source="Khemakhem et al. 2020 (ICE-BeeM), experiments; Hyvärinen & Morioka 2016",
            stochastic=True,
            version=2,
            interval=HALVES,
        ),
        "r2": Metric(
            r2,
            title="Coefficient of determination",
            question="identified",
            headline="score",
            claims={"score": ("explicitness",)},
            best=1.0,
            higher_is_better=True,
            range=(-math.inf, 1.0),
            chance=r2_of_noise,
            means="How much of each factor's variance a line through all codes predicts, on held-out rows.",
            misses="Blind to rotation and to all but straight lines; below 0 where codes are many and rows few.",
            source="von Kügelgen et al. 2021, experiments",
            stochastic=True,
            aligned=False,
            version=2,
            interval=HALVES,
        ),
        "infomec": Metric(
            infomec,
            title="InfoMEC",
            question="identified",
            headline="modularity",
            claims={name: (name,) for name in ("modularity", "compactness", "explicitness")},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            means="How much of the information in each code is about one factor, by nearest neighbours.",
            misses="How much information there is: noise beats a rotation. Read explicitness beside it.",
            source="Hsu et al. 2023 (Latent Quantization); Hsu et al. 2024 (Tripod)",
            stochastic=True,
            invariant_to=frozenset({"permute", "flip", "dead"}),
            tolerance=0.02,
            aligned=False,
            standard=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "dci_es": Metric(
            dci_es,
            title="DCI-ES",
            question="work",
            headline="explicitness",
            claims={**DCI_CLAIMS, "informativeness": ("explicitness",)},
            best=1.0,
            higher_is_better=True,
            range=(-1.0, 1.0),
            chance=nought,
            means="How little depth a random forest needs to read each factor; with DCI and size beside it.",
            misses="How well factors are read in the end: look at informativeness. Blind to rotation that trees undo.",
            source="Eastwood et al. 2023 (DCI-ES)",
            stochastic=True,
            tolerance=0.03,
            aligned=False,
            linear=False,
            standard=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "jemmig": Metric(
            jemmig,
            title="Joint entropy minus mutual information gap",
            question="own_code",
            headline="score",
            claims={"score": ("modularity", "compactness")},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=jemmig_of_noise,
            means="How little each factor's best code holds beside the factor, and the second-best code knows of it.",
            misses="Where its floor is: codes that fill few bins score high knowing nothing.",
            source="Do & Tran 2020",
            strays=0.01,
            standard=False,
            interval=EXTREME,
        ),
        "dcimig": Metric(
            dcimig,
            title="DCIMIG",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity", "compactness")},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=dcimig_of_noise,
            means="How much each factor's best code knows of it and of no other factor.",
            misses="Does not see whether other codes tell the same; factors of large entropy count more.",
            source="Sepliarskaia et al. 2021",
            strays=0.01,
            standard=False,
            interval=HALVES,
        ),
        "mig_sup": Metric(
            mig_sup,
            title="Mutual information gap between factors",
            question="one_factor",
            headline="score",
            claims={"score": ("modularity",)},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=mig_sup_of_noise,
            means="How much more each code knows about its first factor than about its second.",
            misses="A factor that no code knows costs nothing; idle codes cost as much as bad ones.",
            source="Li et al. 2020",
            strays=0.01,
            invariant_to=frozenset({"permute", "flip", "scale"}),  # it averages over all codes
            standard=False,
            interval=EXTREME,
        ),
        "tad": Metric(
            tad,
            binary=True,
            title="Total AUROC difference",
            question="attributes",
            headline="score",
            claims={"score": ("compactness",)},
            best=1.0,  # of two attributes: half their number
            higher_is_better=True,
            range=(0.0, math.inf),
            chance=nought,
            means="How much better one code alone tells each binary attribute than the next does, summed.",
            misses="A sum: lists of other attributes do not compare. An attribute in two codes counts nothing.",
            source="Yeats et al. 2022 (NashAE)",
            needs="needs binary factors",
            standard=False,
            interval=FEW_UNCHECKED_HALVES,
        ),
        "omes": Metric(
            omes,
            title="Overlap and multiple encoding score",
            question="changes",
            headline="score",
            claims={"score": ("modularity", "compactness")},
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            means="How nearly a change of one factor alone changes one code alone.",
            misses="Noise seems to encode every factor; where levels are few, a rotation can beat perfect codes.",
            source="Dapueto et al. 2024",
            needs="needs pairs of rows that differ in one factor only",
            invariant_to=frozenset({"permute", "flip", "dead"}),
            aligned=False,
            standard=False,
            interval=GRID,
        ),
        "factorised_support": Metric(
            factorised_support,
            title="Hausdorff factorised support",
            question="support",
            headline="score",
            best=0.0,
            higher_is_better=False,
            range=(0.0, math.inf),
            means="How far recombined values of two codes lie from those that occur together; needs no factors.",
            misses="Whether codes know anything; grows with the number of codes, and few rows keep it far from 0.",
            source="Roth et al. 2023",
            stochastic=True,
            aligned=False,
            standard=False,
            interval="it is a distance between extremes, which parts of the rows miss",
        ),
        "tmex": Metric(
            tmex,
            title="Test-based measurement exclusivity",
            question="changes",
            headline="score",
            claims={"score": ("modularity", "compactness")},
            best=0.0,
            higher_is_better=False,
            range=(0.0, math.inf),
            means="In how many cells a code depends on a factor where it should not, or fails to where it should.",
            misses="How strong a leak is: with rows enough any is found. Sees linear dependence only.",
            source="Yao et al. 2025",
            stochastic=True,
            aligned=False,
            standard=False,
            interval="it counts tests, which fewer rows pass more seldom",
        ),
    }
)

# Of several models at once, and without labels: no card of codes and factors holds them, `unbraid.rank` does.
LABEL_FREE: Mapping[str, Metric] = MappingProxyType(
    {
        "udr": Metric(
            udr,
            title="Unsupervised disentanglement ranking",
            headline="scores",
            best=1.0,
            higher_is_better=True,
            range=(0.0, math.inf),
            means="How well the latents of a model match those of its siblings one to one; needs no labels.",
            misses="Models that agree for another reason, as PCA of the same data does, also score high.",
            source="Duan et al. 2020 (UDR), eq. 2-3",
            needs="needs the codes of several models",
            stochastic=True,
            interval="it compares models, of which these are all there are",
        ),
    }
)
# Of blocks of codes and factors, which a card has where blocks are given.
BLOCKED: Mapping[str, Metric] = MappingProxyType(
    {
        "block_r2": Metric(
            block_r2,
            title="R² of blocks",
            question="identified",
            headline="score",
            best=1.0,
            higher_is_better=True,
            range=(-math.inf, 1.0),
            means="How much of the variance of each block of factors its own block of codes predicts, on other rows.",
            misses="Blind to rotation within blocks; look at leakage for what other blocks of codes tell.",
            source="von Kügelgen et al. 2021, experiments",
            needs="needs blocks of codes and factors",
            stochastic=True,
        ),
        "block_mcc": Metric(
            block_mcc,
            title="MCC of blocks",
            question="identified",
            headline="score",
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            means="Mean root of R² of each block of factors from a block of codes of its own, matched one to one.",
            misses="Blind to rotation within blocks, and to all but straight lines.",
            source="Khemakhem et al. 2020 (ICE-BeeM), of blocks",
            needs="needs blocks of codes and factors",
            stochastic=True,
        ),
    }
)
# One question each, so that a card of every metric does not hide the few that answer it.
PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "standard": tuple(name for name, row in METRICS.items() if row.standard),
        "identifiability": ("mcc", "r2", "infomec", "mlp_accuracy"),
        "disentanglement": ("dci_boosted", "mig", "snc", "nk", "mlp_accuracy"),
        "symmetry": ("d_lsbd", "independence_score"),
        "sae": ("mig", "snc", "mcc", "modularity"),  # of single codes: no probe on thousands of them at once
        "all": tuple(METRICS),
    }
)
# What people ask, in the order of docs/which-metric.md, and what to know of the answers: cards are grouped by these.
QUESTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "own_code": ("Does each factor sit in one code of its own?", "Copies and rotations cost."),
        "one_factor": ("Is each code about one factor only?", "Silent on factors that no code knows."),
        "identified": ("Are the factors identified?", "One by one, or by all codes together (r2)."),
        "work": ("How much work is it to read the factors?", "Says little of factors that cannot be read."),
        "attributes": ("How well does each code alone tell attributes of two values?", ""),
        "changes": ("Which changes of factors change which codes?", ""),
        "support": ("Do the codes take all combinations of their values?", "Needs no factors."),
        "needed": ("Is the factor's own code needed?", "Or do others tell the same?"),
        "told": ("Do the codes tell the factors at all?", "Whatever the axes: a rotated code may score as high."),
        "symmetry": ("What do the codes do when a cyclic factor takes a step?", ""),
        "unseen": ("Do the codes hold on combinations never seen?", ""),
        "independent": ("How independent are the codes of each other?", "Independent is not informative."),
        "": ("Your own", "Functions that were named by their import path."),
    }
)
MEASURES: Mapping[str, Metric] = MappingProxyType({**METRICS, **LABEL_FREE})


def by_question(rows: Mapping[str, Metric]) -> list[tuple[str, str, list[str]]]:
    """Names by the question that their metric answers, those of one's own last: question, what to know, names."""
    groups = [
        (title, about, [name for name, row in rows.items() if row.question == question])
        for question, (title, about) in QUESTIONS.items()
    ]
    return [group for group in groups if group[2]]
