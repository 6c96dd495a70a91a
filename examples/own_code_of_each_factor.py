"""Find the own code of each factor.

Mutual information of codes and factors; frames mark the one-to-one alignment of codes
and factors that SNC and NK use.
"""

from unbraid import Representation, score
from unbraid.show import plot_hinton

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
