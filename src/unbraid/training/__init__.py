"""Training of one model or of a population by one loop.

- `batches`, `draws`, `adam`, `population`: random numbers, inputs of optimizer steps, updates, members.
- `loop`, `checkpoints`, `workers`: the steps, resuming after an interruption, one process per core on a CPU.
- `train`: `unbraid.train`.
"""
