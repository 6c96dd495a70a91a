"""Records of what papers report, beside what was measured here: a folder of JSON files, results/.

- `schema`: what one file may hold. `files`: where it lies, and how it is read and written.
- `check`, `earlier`: what is wrong in a folder, and what it has lost or changed since a revision.
- `measured`, `adding`: from score cards and tables of studies to records.
- `shown`: records as tables.
"""
