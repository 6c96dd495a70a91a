"""Sweeps of many models: run, resume, rank without labels, compare.

- `schema`, `expand`: the YAML, and the runs it stands for.
- `study`, `session`, `store`: what `unbraid.Study` is, one `study run`, and the folder.
- `executors`: where runs are trained and scored.
- `scores`, `results`: scores.json of a run, and the table of all.
"""
