"""Whom to cite: the papers behind every metric, family and dataset.

The entries themselves are in references.bib, in the form in which they are printed: fields in braces, each on a line
of its own, a blank line between entries.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from unbraid._utils.suggest import suggestion

ITSELF = "unbraid"


@dataclass(frozen=True)
class Reference:
    """One entry of a bibliography. Fields are as BibTeX wants them; braces keep capitals."""

    kind: str  # article, inproceedings, misc, phdthesis, techreport or software
    fields: Mapping[str, str]  # author, title, year, and where it appeared: booktitle or journal, volume, pages, ...
    bibtex: str  # the entry as text, without a line end

    def __str__(self) -> str:
        """One line for people: authors, year, title, where."""
        names = [_given_first(name) for name in self.fields["author"].split(" and ")]
        authors = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        where = ", ".join(self.fields[name] for name in _SAID if name in self.fields)
        return _plain(f"{authors} ({self.fields['year']}). {self.fields['title']}. {where}.")


_SAID = ("booktitle", "journal", "school", "institution", "volume", "number", "pages", "eprint", "howpublished")


def _given_first(name: str) -> str:
    family, comma, given = name.partition(", ")
    return f"{given} {family}" if comma else family


def _plain(text: str) -> str:
    for written, meant in ((r"$\beta$", "β"), (r"\url", ""), ("--", "–")):
        text = text.replace(written, meant)
    return re.sub(r"[{}]", "", text)


def read_bibliography(text: str) -> dict[str, Reference]:
    """The entries of a bibliography in the form of references.bib, by key."""
    entries = re.findall(r"^@(\w+)\{(\w+),\n((?:  .*\n)+)\}$", text, flags=re.MULTILINE)
    return {
        key: Reference(
            kind,
            MappingProxyType(dict(re.findall(r"^  (\w+) *= \{(.*)\},$", fields, flags=re.MULTILINE))),
            f"@{kind}{{{key},\n{fields}}}",
        )
        for kind, key, fields in entries
    }


REFERENCES: Mapping[str, Reference] = MappingProxyType(
    read_bibliography((files("unbraid._utils") / "references.bib").read_text(encoding="utf-8"))
)

CHEN, DCI, UDR, SNC_NK, LSBD, LOCATELLO = (
    "chen2018isolating",
    "eastwood2018framework",
    "duan2020unsupervised",
    "mahon2023correcting",
    "tonnaer2022quantifying",
    "locatello2019challenging",
)
VAE = "kingma2014auto"

# The papers of each metric, family and dataset, the one to cite first in front.
CITED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ITSELF: (ITSELF,),
        # Metrics
        "mig": (CHEN, UDR),
        "mig_exact": (CHEN,),
        "dci_lasso": (DCI,),
        "dci_forest": (DCI,),
        "dci_boosted": (DCI, LOCATELLO),
        "med": ("cao2022empirical", SNC_NK),
        "sap": ("kumar2018variational", SNC_NK),
        "snc": (SNC_NK,),
        "nk": (SNC_NK,),
        "modularity": ("ridgeway2018learning",),
        "irs": ("suter2019robustly",),
        "factor_leakage": ("painter2020linear",),
        "amari": (DCI, "yang1997adaptive"),
        "explicitness": ("ridgeway2018learning",),
        "linear_accuracy": (SNC_NK,),
        "mlp_accuracy": (SNC_NK,),
        "zero_shot": (DCI,),
        "beta_vae_score": ("higgins2017beta", UDR),
        "factor_vae_score": ("kim2018disentangling", UDR),
        "elbo_terms": (CHEN,),
        "d_lsbd": (LSBD,),
        "independence_score": ("painter2020linear",),
        "mcc": ("khemakhem2020ice", "hyvarinen2016unsupervised"),
        "r2": ("vonkugelgen2021self",),
        "infomec": ("hsu2023disentanglement", "hsu2024tripod"),
        "dci_es": ("eastwood2023dci", DCI),
        "jemmig": ("do2020theory",),
        "dcimig": ("sepliarskaia2021measure",),
        "mig_sup": ("li2020progressive",),
        "tad": ("yeats2022nashae",),
        "omes": ("dapueto2024disentangled",),
        "factorised_support": ("roth2023disentanglement",),
        "tmex": ("yao2025third", "shah2020hardness"),
        "udr": (UDR,),
        # Families
        "pca": ("pearson1901lines", DCI),
        "vae": (VAE,),
        "beta_vae": ("higgins2017beta",),
        "cci_vae": ("burgess2018understanding",),
        "factor_vae": ("kim2018disentangling",),
        "beta_tcvae": (CHEN,),
        "dip_vae_i": ("kumar2018variational",),
        "dip_vae_ii": ("kumar2018variational",),
        "info_gan": ("chen2016infogan", "gulrajani2017improved", DCI),
        "ada_gvae": ("locatello2020weakly", "hosoya2019group"),
        "ada_ml_vae": ("locatello2020weakly", "bouchacourt2018multi"),
        "delta_vae": ("perezrey2020diffusion", LSBD),
        "lsbd_vae": (LSBD,),
        "quessard": ("quessard2020learning",),
        "forward_vae": ("caselles2019symmetry",),
        "parted_vae": ("hajimiri2021semi",),
        "weak_de": ("valenti2022leveraging",),
        "mtd": ("sha2021multi", SNC_NK),
        # Datasets drawn by this package: the set that each follows
        "sprites": ("matthey2017dsprites",),
        "square": (LSBD,),
        "arrow": (LSBD,),
        "airplane": (LSBD,),
        "airplanes": (LSBD, "wu2015shapenets"),
        "turntable": ("nene1996columbia",),
        "cars_rendered": ("reed2015deep",),
        "teapot": (DCI, "newell1975utilization"),
        "shapes3d_rendered": ("burgess2018shapes",),
        "flatland": ("caselles2019symmetry", "quessard2020learning"),
        # Official datasets
        "dsprites": ("matthey2017dsprites",),
        "shapes3d": ("burgess2018shapes",),
        "mpi3d_toy": ("gondal2019transfer",),
        "mpi3d_realistic": ("gondal2019transfer",),
        "mpi3d_real": ("gondal2019transfer",),
        "mpi3d_real_complex": ("gondal2019transfer",),
        "cars3d": ("reed2015deep",),
        "teapots_official": (DCI,),
        "coil100": ("nene1996columbia",),
        "modelnet40_airplanes": ("wu2015shapenets", LSBD),
        "chairs3d": ("aubry2014seeing",),
        "celeba": ("liu2015faceattributes",),
        "faces3d": ("paysan2009face", CHEN),
    }
)


def bibtex(*names: str) -> str:
    """The entries that these metrics, families and datasets ask for, each once, in the order of the names.

    Raises:
        ValueError: a name is unknown; the message offers the nearest.

    Example:
        >>> print(bibtex("dci_lasso"))
        @inproceedings{eastwood2018framework,
          author    = {Eastwood, Cian and Williams, Christopher K. I.},
          title     = {A Framework for the Quantitative Evaluation of Disentangled Representations},
          booktitle = {International Conference on Learning Representations},
          year      = {2018},
        }
    """
    return "\n\n".join(REFERENCES[key].bibtex for key in keys_of(names))


def keys_of(names: Iterable[str]) -> list[str]:
    """Keys of REFERENCES for these names, each once; raises as `bibtex` does."""
    for name in names:
        if name not in CITED:
            hint = suggestion(name, CITED, few="give a metric, family or dataset, or unbraid")
            raise ValueError(f"nothing to cite for {name!r}; {hint}")
    return list(dict.fromkeys(key for name in names for key in CITED[name]))
