"""What to cite for a metric, a family or a dataset."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from unbraid.base.references import ITSELF, REFERENCES, Reference, read_bibliography
from unbraid.base.suggest import suggestion
from unbraid.metrics import MEASURES
from unbraid.metrics._shared.metric_arguments import has_arguments, with_arguments

# The papers of each metric, family and dataset, the one to cite first in front.
CITED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{name: row.cites for name, row in MEASURES.items()},
        ITSELF: ("unbraid",),
        "pca": ("pearson1901lines", "eastwood2018framework"),
        "vae": ("kingma2014auto",),
        "beta_vae": ("higgins2017beta",),
        "cci_vae": ("burgess2018understanding",),
        "factor_vae": ("kim2018disentangling",),
        "beta_tcvae": ("chen2018isolating",),
        "dip_vae_i": ("kumar2018variational",),
        "dip_vae_ii": ("kumar2018variational",),
        "qlae": ("hsu2023disentanglement",),
        "qvae": ("baykal2024disentanglement", "hsu2023disentanglement"),
        "info_gan": ("chen2016infogan", "gulrajani2017improved", "eastwood2018framework"),
        "ada_gvae": ("locatello2020weakly", "hosoya2019group"),
        "ada_ml_vae": ("locatello2020weakly", "bouchacourt2018multi"),
        "delta_vae": ("perezrey2020diffusion", "tonnaer2022quantifying"),
        "lsbd_vae": ("tonnaer2022quantifying",),
        "quessard": ("quessard2020learning",),
        "forward_vae": ("caselles2019symmetry",),
        "parted_vae": ("hajimiri2021semi",),
        "weak_de": ("valenti2022leveraging",),
        "mtd": ("sha2021multi", "mahon2023correcting"),
        "sprites": ("matthey2017dsprites",),
        "square": ("tonnaer2022quantifying",),
        "arrow": ("tonnaer2022quantifying",),
        "airplane": ("tonnaer2022quantifying",),
        "airplanes": ("tonnaer2022quantifying", "wu2015shapenets"),
        "turntable": ("nene1996columbia",),
        "cars_rendered": ("reed2015deep",),
        "teapot": ("eastwood2018framework", "newell1975utilization"),
        "shapes3d_rendered": ("burgess2018shapes",),
        "flatland": ("caselles2019symmetry", "quessard2020learning"),
        "dsprites": ("matthey2017dsprites",),
        "shapes3d": ("burgess2018shapes",),
        "mpi3d_toy": ("gondal2019transfer",),
        "mpi3d_realistic": ("gondal2019transfer",),
        "mpi3d_real": ("gondal2019transfer",),
        "mpi3d_real_complex": ("gondal2019transfer",),
        "cars3d": ("reed2015deep",),
        "teapots_official": ("eastwood2018framework",),
        "coil100": ("nene1996columbia",),
        "modelnet40_airplanes": ("wu2015shapenets", "tonnaer2022quantifying"),
        "chairs3d": ("aubry2014seeing",),
        "celeba": ("liu2015faceattributes",),
        "faces3d": ("paysan2009face", "chen2018isolating"),
    }
)

# The entries of all papers: those of references.bib, and those that stand in the file of a metric.
ENTRIES: Mapping[str, Reference] = MappingProxyType(
    {**REFERENCES, **read_bibliography("\n".join(row.bibtex for row in MEASURES.values()))}
)


def bibtex(*names: str) -> str:
    """The entries that these metrics, families and datasets ask for, each once, in the order of the names.

    Raises:
        ValueError: a name is unknown; the message offers the nearest. Or a metric takes no such argument.

    Example:
        >>> print(bibtex("dci_lasso"))
        @inproceedings{eastwood2018framework,
          author    = {Eastwood, Cian and Williams, Christopher K. I.},
          title     = {A Framework for the Quantitative Evaluation of Disentangled Representations},
          booktitle = {International Conference on Learning Representations},
          year      = {2018},
        }
    """
    return "\n\n".join(ENTRIES[key].bibtex for key in keys_of(names))


def keys_of(names: Iterable[str]) -> list[str]:
    """Keys of ENTRIES for these names, each once; raises as `bibtex` does."""
    keys: list[str] = []
    for name in names:
        cited = name
        if has_arguments(name):  # "mig(bins=5)" is of the papers of mig
            with_arguments(name)
            cited = name.partition("(")[0]
        if cited not in CITED:
            hint = suggestion(name, CITED, few="give a metric, family or dataset, or unbraid")
            raise ValueError(f"nothing to cite for {name!r}; {hint}")
        keys += CITED[cited]
    return list(dict.fromkeys(keys))
