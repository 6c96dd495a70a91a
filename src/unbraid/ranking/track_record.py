"""How far a choice by UDR can be trusted, in the same words everywhere: from choices judged by labels afterwards."""

# The UDR of a chosen model below which nothing is promised, and the similarity, penalty and comparison of the record.
LOW, MEASURED = 0.6, ("lasso", 0.1, "all")
# Drawn datasets, the mean share of the other models that the chosen one was better than, and its 95 % interval
# (docs/ranking.md, where the table is).
DATASETS, SHARE, INTERVAL = 15, 0.72, (0.62, 0.82)
CAVEAT = "models can agree on latents that mix factors, and UDR does not lower the score of one that found few of them"


def trust(udr: float) -> str:
    """A clause on how far the choice of a model with this UDR can be trusted; refused where models disagree."""
    if udr < LOW:
        return f"a UDR below {LOW} is low: these models disagree, so nobody can say how far the choice can be trusted"
    low, high = INTERVAL
    return (
        f"on {DATASETS} drawn datasets, from single shapes to cars and rooms, a model chosen so was by labels better "
        f"than {SHARE:.0%} of the other models (95% interval {low:.0%} to {high:.0%}; 50% is luck)"
    )
