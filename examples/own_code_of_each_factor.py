"""Which code is each factor's own.

Mutual information of codes and factors; the frames are the one-to-one alignment by
which SNC and NK pick the codes.
"""

from unbraid import Representation, score
from unbraid.plots import plot_hinton

example = Representation.example()
card = score(example, metrics=["mig", "snc"])

for factor, code, value in zip(
    example.names, card["snc"].alignment, card["snc"].per_factor, strict=True
):
    print(f"{factor}: code {code}, accuracy above chance {value:.2f}")

axes = plot_hinton(
    card["mig"], column_names=example.names, alignment=card["snc"].alignment
)
figure = axes.figure
