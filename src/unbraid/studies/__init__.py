"""Sweeps of many models: run, resume, rank without labels, compare.

- `schema`, `expand`: the YAML, and the runs it stands for.
- `study_record`: what a study is, used by every other module here; `study`: what can be done with one, on top of all.
- `execution`, `executors`: one `study run`, and where runs are trained and scored.
- `run_scores`, `study_table`, `study_page`: scores.json of a run, the table of all runs, and their page.
- `holdout`: images that models never saw. `store`: the files of a study's folder.
"""
