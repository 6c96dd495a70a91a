"""Training of one model or of a population by one loop.

- `batches`, `draws`, `adam`, `population`: random numbers, what optimizer steps are given, updates, members alone or
  stacked.
- `loop`, `checkpoints`, `workers`: the steps, what an interrupted one continues from, one process per core on a CPU.
- `train`: what `unbraid.train` is.
"""
