"""Keys of named streams of random numbers."""

import hashlib


def stream(seed: int, purpose: str) -> int:
    """The key of one named stream of random numbers of one member; signed 64 bits."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
