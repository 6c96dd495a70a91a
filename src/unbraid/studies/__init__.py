"""Sweeps of many models: run, resume, rank without labels, compare.

- `schema`, `expand`: the YAML, and the runs it stands for.
- `record`: what a study is, which every other module here is told; `study`: what can be done with one, on top of all.
- `execution`, `executors`: one `study run`, and where runs are trained and scored.
- `scores`, `results`, `page`: scores.json of a run, the table of all, and what their page shows.
- `holdout`: images that models never saw. `storage`: the folder, here or in an object store.
"""
