"""The folder of a study, here or mirrored from an object store."""
