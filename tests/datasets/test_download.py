"""Downloads against a server on 127.0.0.1 that can resume, cut the line, and change its mind."""

import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from unbraid.datasets.download import ATTEMPTS, ChecksumMismatch, download
from unbraid.datasets.official_files import OfficialFile

DATA = np.random.default_rng(0).bytes(3_000_000)


@dataclass
class Site:
    """What the server has, how it behaves, and what it was asked."""

    data: bytes = DATA
    tag: str = '"first"'
    ranges: bool = True
    length: bool = True
    cut_after: list[int] = field(default_factory=list)  # bytes of the body, one entry per answer, then no more cuts
    status: int = 0
    kind: str = "application/octet-stream"
    asked: list[str] = field(default_factory=list)  # the Range of each request
    address: str = ""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range") or ""
            site.asked.append(wanted)
            if site.status == 302:
                self.send_response(302)
                self.send_header("Location", site.address)
                self.end_headers()
                return
            if site.status:
                self.send_error(site.status)
                return
            start, body = 0, site.data
            same = self.headers.get("If-Range") in {None, site.tag}
            if wanted and site.ranges and same:
                start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # pyright: ignore[reportOptionalSubscript]
                if start >= len(body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            body = body[start:]
            self.send_header("ETag", site.tag)
            self.send_header("Content-Type", site.kind)
            if site.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: site.cut_after.pop(0)] if site.cut_after else body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_address[1]}/data.npz"
    monkeypatch.setattr("unbraid.datasets.download.PAUSE", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def file(site: Site) -> OfficialFile:
    return OfficialFile("data.npz", site.address, sha256=hashlib.sha256(DATA).hexdigest(), downloads=True)


def assert_whole(path: Path, data: bytes = DATA) -> None:
    assert path.read_bytes() == data
    assert {entry.name for entry in path.parent.iterdir()} <= {path.name, f".{path.name}.lock"}


def test_a_file_arrives_with_progress(tmp_path: Path, file: OfficialFile) -> None:
    seen: list[tuple[int, int]] = []
    path = download(file, tmp_path / "official", progress=lambda *counts: seen.append(counts))
    assert_whole(path)
    assert seen[-1] == (len(DATA), len(DATA))
    assert seen == sorted(seen)


def test_what_is_there_is_not_fetched_again(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    (tmp_path / "data.npz").write_bytes(b"mine")
    assert download(file, tmp_path).read_bytes() == b"mine"
    assert site.asked == []


def test_a_file_that_is_there_cut_short_is_no_download(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    (tmp_path / "data.npz").write_bytes(DATA[:10])
    known = replace(file, size=len(DATA))
    with pytest.raises(ValueError, match=r"data.npz: incomplete, 10 of 3,000,000 bytes; delete it and get it again"):
        download(known, tmp_path)
    assert download(known, tmp_path, verify=False).read_bytes() == DATA[:10]
    assert site.asked == []


@pytest.mark.parametrize("checksum", [hashlib.sha256(DATA).hexdigest(), ""])
def test_of_two_that_want_a_file_one_fetches_it(tmp_path: Path, file: OfficialFile, site: Site, checksum: str) -> None:
    wanted, paths = replace(file, sha256=checksum), []
    other = threading.Thread(target=lambda: paths.append(download(wanted, tmp_path)))

    def begin_other(done: int, _: int) -> None:
        if done > 1_000_000 and other.ident is None:
            other.start()
            other.join(0.2)  # it waits

    paths.append(download(wanted, tmp_path, progress=begin_other))
    other.join()
    assert paths == [tmp_path / "data.npz"] * 2
    assert site.asked == [""]
    assert_whole(paths[0])


def test_a_line_cut_half_way_is_taken_up_again(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    site.cut_after = [1_500_000, 10]
    assert_whole(download(file, tmp_path))
    assert site.asked == ["", "bytes=1500000-", "bytes=1500010-"]


def test_the_next_call_goes_on_where_the_last_was_left(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    site.cut_after = [1_000_000] + [0] * (ATTEMPTS - 1)
    with pytest.raises(OSError, match=r"1,000,000 bytes are kept, and the same command goes on from there"):
        download(file, tmp_path)
    assert not (tmp_path / "data.npz").exists()
    site.asked.clear()
    assert_whole(download(file, tmp_path))
    assert site.asked == ["bytes=1000000-"]


def test_an_interrupt_leaves_the_part_and_no_file(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    def stop(done: int, _: int) -> None:
        if done > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(file, tmp_path, progress=stop)
    assert not (tmp_path / "data.npz").exists()
    kept = (tmp_path / "data.npz.part").stat().st_size
    assert kept > 1_000_000
    assert_whole(download(file, tmp_path))
    assert site.asked[1] == f"bytes={kept}-"


def test_a_file_that_changed_meanwhile_is_begun_anew(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    site.cut_after = [1_000_000] + [0] * (ATTEMPTS - 1)
    with pytest.raises(OSError, match="kept"):
        download(replace(file, sha256=""), tmp_path)
    site.data, site.tag = DATA[::-1], '"second"'
    assert_whole(download(replace(file, sha256=""), tmp_path), DATA[::-1])


def test_a_server_without_ranges_sends_it_all_again(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    site.ranges = False
    site.cut_after = [1_000_000]
    assert_whole(download(file, tmp_path))
    assert site.asked == ["", "bytes=1000000-"]


def test_a_server_that_tells_no_length_is_believed_and_checked(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    site.length = False
    assert_whole(download(file, tmp_path))
    (tmp_path / "data.npz").unlink()
    site.cut_after = [1_000_000]
    with pytest.raises(ChecksumMismatch):
        download(file, tmp_path)


def test_a_whole_part_needs_only_its_name(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    (tmp_path / "data.npz.part").write_bytes(DATA)
    assert_whole(download(file, tmp_path))
    assert site.asked == [f"bytes={len(DATA)}-"]


def test_a_part_longer_than_the_file_is_begun_anew(tmp_path: Path, file: OfficialFile) -> None:
    (tmp_path / "data.npz.part").write_bytes(DATA + b"more")
    assert_whole(download(file, tmp_path))


def test_a_wrong_checksum_names_the_file_and_can_be_overridden(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    wrong = replace(file, sha256="0" * 64)
    with pytest.raises(
        ChecksumMismatch, match=r"data.npz.part: its checksum is sha256:[0-9a-f]{64}, expected sha256:0"
    ):
        download(wrong, tmp_path)
    assert not (tmp_path / "data.npz").exists()
    site.asked.clear()
    assert_whole(download(wrong, tmp_path, verify=False))
    assert site.asked == [f"bytes={len(DATA)}-"]


@pytest.mark.parametrize("algorithm", ["md5", "git_sha1"])
def test_other_checksums_are_compared_as_well(tmp_path: Path, file: OfficialFile, algorithm: str) -> None:
    header = b"blob %d\0" % len(DATA)
    right = {"md5": hashlib.md5(DATA).hexdigest(), "git_sha1": hashlib.sha1(header + DATA).hexdigest()}[algorithm]
    assert_whole(download(replace(file, sha256="", **{algorithm: right}), tmp_path / "right"))
    with pytest.raises(ChecksumMismatch):
        download(replace(file, sha256="", **{algorithm: right[::-1]}), tmp_path / "wrong")


def test_a_page_that_asks_to_log_in_is_not_taken_for_the_file(tmp_path: Path, file: OfficialFile, site: Site) -> None:
    site.data, site.kind = b"<html>Welcome to our network</html>", "text/html; charset=utf-8"
    for known in (file, replace(file, sha256="")):
        with pytest.raises(OSError, match="data.npz: the server sent a page and not the file"):
            download(known, tmp_path)
    site.data, site.kind = DATA, "application/zip"
    assert_whole(download(file, tmp_path))
    assert site.asked == ["", "", ""]
