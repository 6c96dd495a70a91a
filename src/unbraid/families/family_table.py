"""The table of model families, by the name that `unbraid.train` and the command line take."""

from unbraid.base.plugins import Table
from unbraid.base.suggest import suggestion
from unbraid.families.family import Family
from unbraid.families.own_family import own_family
from unbraid.files.trust import is_code

# One line for each file, in the order of the tables; a family is named as its row is, in lower case.
from unbraid.families.vae import VAE, BETA_VAE
from unbraid.families.cci_vae import CCI_VAE
from unbraid.families.factor_vae import FACTOR_VAE
from unbraid.families.beta_tcvae import BETA_TCVAE
from unbraid.families.dip_vae import DIP_VAE_I, DIP_VAE_II
from unbraid.families.info_gan import INFO_GAN
from unbraid.families.pca import PCA
from unbraid.families.qlae import QLAE
from unbraid.families.qvae import QVAE
from unbraid.families.ada_vae import ADA_GVAE, ADA_ML_VAE
from unbraid.families.delta_vae import DELTA_VAE
from unbraid.families.lsbd_vae import LSBD_VAE
from unbraid.families.quessard import QUESSARD
from unbraid.families.forward_vae import FORWARD_VAE
from unbraid.families.parted_vae import PARTED_VAE
from unbraid.families.weak_de import WEAK_DE
from unbraid.families.mtd import MTD

FAMILIES: Table[Family] = Table(
    {name.lower(): row for name, row in vars().items() if isinstance(row, Family)},
    "unbraid.families",
    lambda row: isinstance(row, Family),
    "family",
)


def find_family(name: str) -> Family:
    """The row of a family: one of the table, or the user's own by "package.module:name".

    Raises:
        UntrustedCode: it is code that the user did not name.
        ValueError: no such family, the message offers the nearest name; or it is none that can be trained.
    """
    if not isinstance(name, str):
        raise ValueError(f"a family is named, such as 'beta_vae'; got {name!r}")
    if name in FAMILIES:
        return FAMILIES[name]
    if is_code(name):
        return own_family(name)
    raise ValueError(f"unknown family {name!r}; {family_hint(name)}")


def family_hint(name: str) -> str:
    """The end of an error message about an unknown family: the nearest names."""
    return f"{suggestion(name, FAMILIES)} (your own: package.module:name)"
