"""Numbers in words, where their names in files are abbreviations."""

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "auc": "area under the curve",
    "nm_auc": "area under the curve, best code left out",
    "norm_mean": "mean, relative to the best code",
    "index_code_mi": "index-code mutual information",
    "dimension_wise_kl": "dimension-wise KL",
    "kl": "KL to the prior",
    "kl_sampled": "KL to the prior, sampled",
    "kl_sampled_error": "standard error of the sampled KL",
    "nrmse": "normalised root mean squared error",
    "codes_from_factors": "codes predicted from factors",
    "n_captured": "factors captured",
    "n_batches": "batches",
    "n_rows": "rows",
    "msas_smi": "MSAS by mutual information",
    "msgs_smi": "MSGS by mutual information",
    "lms_spn": "LMS by neighbours",
    "msas_spn": "MSAS by neighbours",
    "msgs_spn": "MSGS by neighbours",
    "informative": "informative latents",
}


def in_words(name: str) -> str:
    """What a page calls a number of this name.

    Example:
        >>> in_words("kl_sampled"), in_words("train_accuracy")
        ('KL to the prior, sampled', 'train accuracy')
    """
    return WORDS.get(name, name.replace("_", " "))
