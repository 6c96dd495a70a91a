"""Training of one model or of a population by one loop.

- `families`: the table of families, and how to add one.
- `batches`, `adam`, `population`, `loop`: draws, updates, members alone or stacked, and the steps with checkpoints.
- `device`, `workers`: where to train; one process per core on a CPU.
- `api`, `run`: what `unbraid.train` and `unbraid.load_run` are.
"""
