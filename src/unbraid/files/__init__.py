"""Files: written whole or not at all, checked when read, locked, and mirrored to an object store."""
