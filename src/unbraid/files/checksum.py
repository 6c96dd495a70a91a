"""A checksum within each file of numbers or settings that is written here: of other bytes nobody reads others.

It is a text of the file's own metadata, or of a JSON object, so that the file is an ordinary one to all others. Files
without it are read as they are.
"""

import hashlib
import json
import mmap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEY = "checksum"
MARK, LENGTH = b"unbraid-sha256:", 64
BLANK = (MARK + b"0" * LENGTH).decode()  # what stands in the metadata until `add_checksum`
CHUNK = 1 << 22


def add_checksum(path: Path) -> None:
    """Set the checksum of a file whose metadata holds BLANK under KEY, or of a zip archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = BLANK.encode()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        place = content.rfind(BLANK.encode()) + len(MARK)
        checksum = _digest(content, place)
        file.seek(place)
        file.write(checksum)


def checksummed(content: bytes | memoryview) -> bytearray:
    """The content of a file with BLANK in it, the checksum in its place."""
    whole = bytearray(content)
    place = whole.rfind(BLANK.encode()) + len(MARK)
    whole[place : place + LENGTH] = _digest(whole, place)
    return whole


def checksummed_json(content: Mapping[str, Any]) -> bytearray:
    """An object as the content of a JSON file, a line for each key, its checksum under KEY."""
    lines = (f"  {json.dumps(name)}: {_ENCODER.encode(value)}" for name, value in {**content, KEY: BLANK}.items())
    return checksummed(("{\n" + ",\n".join(lines) + "\n}\n").encode())


_ENCODER = json.JSONEncoder(allow_nan=False)  # which is written in C where it need not indent


def without_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The object that was given to `checksummed_json`."""
    return {name: value for name, value in content.items() if name != KEY or MARK.decode() not in str(value)}


def check_file(path: Path) -> None:
    """Raises ValueError where a file has a checksum, and it is that of other bytes."""
    if not path.is_file() or not path.stat().st_size:  # to open a pipe would wait for ever
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        check_content(content)


def is_whole(path: Path) -> bool:
    """Whether a file has a checksum, and it is that of its content."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            check_content(content, must=True)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return False
    return True


def check_content(content: bytes | mmap.mmap, *, must: bool = False) -> None:
    """`check_file` of the content of a file, which `must` have a checksum or may."""
    place = content.rfind(MARK) + len(MARK)
    if must and place < len(MARK):
        raise ValueError(f"it has no {KEY}")
    if place >= len(MARK) and content[place : place + LENGTH] != _digest(content, place):
        raise ValueError(
            f"its {KEY} is that of other content; if that is meant, save it without {KEY!r} in its metadata"
        )


def _digest(content: bytes | bytearray | mmap.mmap, place: int) -> bytes:
    """Of all bytes but those of the checksum itself."""
    digest = hashlib.sha256()
    with memoryview(content) as view:
        for start, stop in ((0, place), (place + LENGTH, len(view))):
            for first in range(start, stop, CHUNK):
                digest.update(view[first : min(first + CHUNK, stop)])
    return digest.hexdigest().encode()
