"""Whom to cite: the papers behind every metric, family and dataset, in one table."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from unbraid._suggest import suggestion

ITSELF = "unbraid"


@dataclass(frozen=True)
class Reference:
    """One entry of a bibliography. Fields are as BibTeX wants them; braces keep capitals."""

    kind: str  # article, inproceedings, misc, phdthesis, techreport or software
    author: str
    title: str
    year: int
    venue: Mapping[str, str]  # the other fields: booktitle or journal, volume, pages, ...

    def bibtex(self, key: str) -> str:
        """The entry as text, without a line end."""
        fields = {"author": self.author, "title": self.title, **self.venue, "year": str(self.year)}
        width = max(map(len, fields))
        lines = [f"  {name:<{width}} = {{{value}}}," for name, value in fields.items()]
        return "\n".join([f"@{self.kind}{{{key},", *lines, "}"])

    def __str__(self) -> str:
        """One line for people: authors, year, title, where."""
        names = [_given_first(name) for name in self.author.split(" and ")]
        authors = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        where = ", ".join(self.venue[name] for name in _SAID if name in self.venue)
        return _plain(f"{authors} ({self.year}). {self.title}. {where}.")


_SAID = ("booktitle", "journal", "school", "institution", "volume", "number", "pages", "eprint", "howpublished")


def _given_first(name: str) -> str:
    family, comma, given = name.partition(", ")
    return f"{given} {family}" if comma else family


def _plain(text: str) -> str:
    for written, meant in ((r"$\beta$", "β"), (r"\url", ""), ("--", "–")):
        text = text.replace(written, meant)
    return re.sub(r"[{}]", "", text)


def _at(kind: str, author: str, title: str, year: int, **venue: str) -> Reference:
    return Reference(kind, author, title, year, MappingProxyType(venue))


NEURIPS = "Advances in Neural Information Processing Systems"
ICLR = "International Conference on Learning Representations"
ICML = "Proceedings of the {n} International Conference on Machine Learning"

REFERENCES: Mapping[str, Reference] = MappingProxyType(
    {
        ITSELF: _at(
            "software",
            "{The unbraid developers}",
            "unbraid: measure, train and select disentangled representations",
            2026,
            version="0.1.0",
        ),
        # Metrics
        "chen2018isolating": _at(
            "inproceedings",
            "Chen, Ricky T. Q. and Li, Xuechen and Grosse, Roger B. and Duvenaud, David K.",
            "Isolating Sources of Disentanglement in Variational Autoencoders",
            2018,
            booktitle=NEURIPS,
            volume="31",
        ),
        "eastwood2018framework": _at(
            "inproceedings",
            "Eastwood, Cian and Williams, Christopher K. I.",
            "A Framework for the Quantitative Evaluation of Disentangled Representations",
            2018,
            booktitle=ICLR,
        ),
        "locatello2019challenging": _at(
            "inproceedings",
            "Locatello, Francesco and Bauer, Stefan and Lucic, Mario and Rätsch, Gunnar and Gelly, Sylvain and "
            "Schölkopf, Bernhard and Bachem, Olivier",
            "Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations",
            2019,
            booktitle=ICML.format(n="36th"),
            series="PMLR",
            volume="97",
            pages="4114--4124",
        ),
        "duan2020unsupervised": _at(
            "inproceedings",
            "Duan, Sunny and Matthey, Loic and Saraiva, Andre and Watters, Nicholas and Burgess, Christopher P. and "
            "Lerchner, Alexander and Higgins, Irina",
            "Unsupervised Model Selection for Variational Disentangled Representation Learning",
            2020,
            booktitle=ICLR,
        ),
        "cao2022empirical": _at(
            "inproceedings",
            "Cao, Jinkun and Nai, Ruiqian and Yang, Qing and Huang, Jialei and Gao, Yang",
            "An Empirical Study on Disentanglement of Negative-free Contrastive Learning",
            2022,
            booktitle=NEURIPS,
            volume="35",
        ),
        "mahon2023correcting": _at(
            "article",
            "Mahon, Louis and Sha, Lei and Lukasiewicz, Thomas",
            "Correcting Flaws in Common Disentanglement Metrics",
            2023,
            journal="Transactions on Machine Learning Research",
            url="https://openreview.net/forum?id=c8WJ4Vozb2",
            note="arXiv:2304.02335",
        ),
        "kumar2018variational": _at(
            "inproceedings",
            "Kumar, Abhishek and Sattigeri, Prasanna and Balakrishnan, Avinash",
            "Variational Inference of Disentangled Latent Concepts from Unlabeled Observations",
            2018,
            booktitle=ICLR,
        ),
        "ridgeway2018learning": _at(
            "inproceedings",
            "Ridgeway, Karl and Mozer, Michael C.",
            "Learning Deep Disentangled Embeddings with the {F}-Statistic Loss",
            2018,
            booktitle=NEURIPS,
            volume="31",
        ),
        "suter2019robustly": _at(
            "inproceedings",
            "Suter, Raphael and Miladinović, Đorđe and Schölkopf, Bernhard and Bauer, Stefan",
            "Robustly Disentangled Causal Mechanisms: Validating Deep Representations for Interventional Robustness",
            2019,
            booktitle=ICML.format(n="36th"),
            series="PMLR",
            volume="97",
            pages="6056--6065",
        ),
        "painter2020linear": _at(
            "inproceedings",
            "Painter, Matthew and Prügel-Bennett, Adam and Hare, Jonathon",
            "Linear Disentangled Representations and Unsupervised Action Estimation",
            2020,
            booktitle=NEURIPS,
            volume="33",
        ),
        "yang1997adaptive": _at(
            "article",
            "Yang, Howard Hua and Amari, Shun-ichi",
            "Adaptive Online Learning Algorithms for Blind Separation: Maximum Entropy and Minimum Mutual Information",
            1997,
            journal="Neural Computation",
            volume="9",
            number="7",
            pages="1457--1482",
        ),
        "tonnaer2022quantifying": _at(
            "inproceedings",
            "Tonnaer, Loek and Pérez Rey, Luis A. and Menkovski, Vlado and Holenderski, Mike and Portegies, Jacobus W.",
            "Quantifying and Learning Linear Symmetry-Based Disentanglement",
            2022,
            booktitle=ICML.format(n="39th"),
            series="PMLR",
            volume="162",
        ),
        # Families
        "pearson1901lines": _at(
            "article",
            "Pearson, Karl",
            "On Lines and Planes of Closest Fit to Systems of Points in Space",
            1901,
            journal="The London, Edinburgh, and Dublin Philosophical Magazine and Journal of Science",
            volume="2",
            number="11",
            pages="559--572",
        ),
        "kingma2014auto": _at(
            "inproceedings",
            "Kingma, Diederik P. and Welling, Max",
            "Auto-Encoding Variational {Bayes}",
            2014,
            booktitle=ICLR,
        ),
        "higgins2017beta": _at(
            "inproceedings",
            "Higgins, Irina and Matthey, Loic and Pal, Arka and Burgess, Christopher and Glorot, Xavier and "
            "Botvinick, Matthew and Mohamed, Shakir and Lerchner, Alexander",
            r"{$\beta$-VAE}: Learning Basic Visual Concepts with a Constrained Variational Framework",
            2017,
            booktitle=ICLR,
        ),
        "burgess2018understanding": _at(
            "article",
            "Burgess, Christopher P. and Higgins, Irina and Pal, Arka and Matthey, Loic and Watters, Nick and "
            "Desjardins, Guillaume and Lerchner, Alexander",
            r"Understanding Disentangling in {$\beta$-VAE}",
            2018,
            journal="arXiv preprint arXiv:1804.03599",
        ),
        "kim2018disentangling": _at(
            "inproceedings",
            "Kim, Hyunjik and Mnih, Andriy",
            "Disentangling by Factorising",
            2018,
            booktitle=ICML.format(n="35th"),
            series="PMLR",
            volume="80",
            pages="2649--2658",
        ),
        "chen2016infogan": _at(
            "inproceedings",
            "Chen, Xi and Duan, Yan and Houthooft, Rein and Schulman, John and Sutskever, Ilya and Abbeel, Pieter",
            "{InfoGAN}: Interpretable Representation Learning by Information Maximizing Generative Adversarial Nets",
            2016,
            booktitle=NEURIPS,
            volume="29",
            pages="2172--2180",
        ),
        "gulrajani2017improved": _at(
            "inproceedings",
            "Gulrajani, Ishaan and Ahmed, Faruk and Arjovsky, Martin and Dumoulin, Vincent and Courville, Aaron",
            "Improved Training of {Wasserstein} {GANs}",
            2017,
            booktitle=NEURIPS,
            volume="30",
        ),
        "locatello2020weakly": _at(
            "inproceedings",
            "Locatello, Francesco and Poole, Ben and Rätsch, Gunnar and Schölkopf, Bernhard and Bachem, Olivier and "
            "Tschannen, Michael",
            "Weakly-Supervised Disentanglement Without Compromises",
            2020,
            booktitle=ICML.format(n="37th"),
            series="PMLR",
            volume="119",
            pages="6348--6359",
        ),
        "hosoya2019group": _at(
            "inproceedings",
            "Hosoya, Haruo",
            "Group-based Learning of Disentangled Representations with Generalizability for Novel Contents",
            2019,
            booktitle="Proceedings of the 28th International Joint Conference on Artificial Intelligence",
            pages="2506--2513",
        ),
        "bouchacourt2018multi": _at(
            "inproceedings",
            "Bouchacourt, Diane and Tomioka, Ryota and Nowozin, Sebastian",
            "Multi-Level Variational Autoencoder: Learning Disentangled Representations from Grouped Observations",
            2018,
            booktitle="Proceedings of the AAAI Conference on Artificial Intelligence",
            volume="32",
        ),
        "perezrey2020diffusion": _at(
            "inproceedings",
            "Pérez Rey, Luis A. and Menkovski, Vlado and Portegies, Jacobus W.",
            "Diffusion Variational Autoencoders",
            2020,
            booktitle="Proceedings of the 29th International Joint Conference on Artificial Intelligence",
            pages="2704--2710",
        ),
        "quessard2020learning": _at(
            "inproceedings",
            "Quessard, Robin and Barrett, Thomas D. and Clements, William R.",
            "Learning Disentangled Representations and Group Structure of Dynamical Environments",
            2020,
            booktitle=NEURIPS,
            volume="33",
        ),
        "caselles2019symmetry": _at(
            "inproceedings",
            "Caselles-Dupré, Hugo and Garcia-Ortiz, Michael and Filliat, David",
            "Symmetry-Based Disentangled Representation Learning Requires Interaction with Environments",
            2019,
            booktitle=NEURIPS,
            volume="32",
            pages="4606--4615",
        ),
        "hajimiri2021semi": _at(
            "article",
            "Hajimiri, Sina and Lotfi, Aryo and Soleymani Baghshah, Mahdieh",
            "Semi-Supervised Disentanglement of Class-Related and Class-Independent Factors in {VAE}",
            2021,
            journal="arXiv preprint arXiv:2102.00892",
        ),
        "valenti2022leveraging": _at(
            "article",
            "Valenti, Andrea and Bacciu, Davide",
            "Leveraging Relational Information for Learning Weakly Disentangled Representations",
            2022,
            journal="arXiv preprint arXiv:2205.10056",
        ),
        "sha2021multi": _at(
            "inproceedings",
            "Sha, Lei and Lukasiewicz, Thomas",
            "Multi-Type Disentanglement without Adversarial Training",
            2021,
            booktitle="Proceedings of the AAAI Conference on Artificial Intelligence",
            volume="35",
        ),
        # Datasets
        "matthey2017dsprites": _at(
            "misc",
            "Matthey, Loic and Higgins, Irina and Hassabis, Demis and Lerchner, Alexander",
            "{dSprites}: Disentanglement Testing Sprites Dataset",
            2017,
            howpublished=r"\url{https://github.com/deepmind/dsprites-dataset/}",
        ),
        "burgess2018shapes": _at(
            "misc",
            "Burgess, Chris and Kim, Hyunjik",
            "{3D} Shapes Dataset",
            2018,
            howpublished=r"\url{https://github.com/deepmind/3d-shapes/}",
        ),
        "gondal2019transfer": _at(
            "inproceedings",
            "Gondal, Muhammad Waleed and Wüthrich, Manuel and Miladinović, Đorđe and Locatello, Francesco and "
            "Breidt, Martin and Volchkov, Valentin and Akpo, Joel and Bachem, Olivier and Schölkopf, Bernhard and "
            "Bauer, Stefan",
            "On the Transfer of Inductive Bias from Simulation to the Real World: a New Disentanglement Dataset",
            2019,
            booktitle=NEURIPS,
            volume="32",
            pages="15740--15751",
        ),
        "reed2015deep": _at(
            "inproceedings",
            "Reed, Scott E. and Zhang, Yi and Zhang, Yuting and Lee, Honglak",
            "Deep Visual Analogy-Making",
            2015,
            booktitle=NEURIPS,
            volume="28",
        ),
        "nene1996columbia": _at(
            "techreport",
            "Nene, Sameer A. and Nayar, Shree K. and Murase, Hiroshi",
            "{Columbia} Object Image Library ({COIL-100})",
            1996,
            institution="Department of Computer Science, Columbia University",
            number="CUCS-006-96",
        ),
        "wu2015shapenets": _at(
            "inproceedings",
            "Wu, Zhirong and Song, Shuran and Khosla, Aditya and Yu, Fisher and Zhang, Linguang and Tang, Xiaoou and "
            "Xiao, Jianxiong",
            "{3D ShapeNets}: A Deep Representation for Volumetric Shapes",
            2015,
            booktitle="Proceedings of the IEEE Conference on Computer Vision and Pattern Recognition",
            pages="1912--1920",
        ),
        "aubry2014seeing": _at(
            "inproceedings",
            "Aubry, Mathieu and Maturana, Daniel and Efros, Alexei A. and Russell, Bryan C. and Sivic, Josef",
            "Seeing {3D} Chairs: Exemplar Part-based {2D-3D} Alignment Using a Large Dataset of {CAD} Models",
            2014,
            booktitle="Proceedings of the IEEE Conference on Computer Vision and Pattern Recognition",
            pages="3762--3769",
        ),
        "liu2015faceattributes": _at(
            "inproceedings",
            "Liu, Ziwei and Luo, Ping and Wang, Xiaogang and Tang, Xiaoou",
            "Deep Learning Face Attributes in the Wild",
            2015,
            booktitle="Proceedings of the IEEE International Conference on Computer Vision",
            pages="3730--3738",
        ),
        "paysan2009face": _at(
            "inproceedings",
            "Paysan, Pascal and Knothe, Reinhard and Amberg, Brian and Romdhani, Sami and Vetter, Thomas",
            "A {3D} Face Model for Pose and Illumination Invariant Face Recognition",
            2009,
            booktitle="Proceedings of the 6th IEEE International Conference on Advanced Video and Signal Based "
            "Surveillance",
            pages="296--301",
        ),
        "newell1975utilization": _at(
            "phdthesis",
            "Newell, Martin E.",
            "The Utilization of Procedure Models in Digital Image Synthesis",
            1975,
            school="University of Utah",
        ),
    }
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
    return "\n\n".join(REFERENCES[key].bibtex(key) for key in keys_of(names))


def keys_of(names: Iterable[str]) -> list[str]:
    """Keys of REFERENCES for these names, each once; raises as `bibtex` does."""
    for name in names:
        if name not in CITED:
            hint = suggestion(name, CITED, few="give a metric, family or dataset, or unbraid")
            raise ValueError(f"nothing to cite for {name!r}; {hint}")
    return list(dict.fromkeys(key for name in names for key in CITED[name]))
