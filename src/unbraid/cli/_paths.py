"""Folders that commands are given."""

from pathlib import Path


def found_here(path: Path) -> Path:
    """The path itself; of an address such as s3://bucket/study, the folder here that mirrors it."""
    if ":/" not in str(path):
        return path
    from unbraid.studies.storage.remote import local_folder

    return local_folder(path)
