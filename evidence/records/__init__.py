"""Records of what papers report, beside what was measured here: the JSON files in results/.

- `schema`: what one file may hold. `files`: where it lies, and how it is read and written.
- `check`, `earlier`: what is wrong in a folder, and what it has lost or changed since a revision.
- `measured`: means over the seeds of a setting, as records.
"""
