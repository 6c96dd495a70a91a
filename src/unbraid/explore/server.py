"""A small web server for one reader: it answers this machine alone, trusts no request, and reads one folder."""

import hmac
import ipaddress
import json
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from unbraid.errors import UnbraidError
from unbraid.storage.files import below

LARGEST_REQUEST = 65_536  # bytes
MOST_READERS = 100  # connections at once
PIECE = 65_536  # bytes of a file sent at a time
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Reply:
    body: bytes | Path  # a file is sent piece by piece
    kind: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(UnbraidError):
    """A request that is answered with an error, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


# From the path of a GET ("/" and what follows, decoded), or of a POST with its content, to a reply; raises Refused.
Get = Callable[[str], Reply]
Post = Callable[[str, Mapping[str, Any]], Reply]


def html(text: str) -> Reply:
    return Reply(text.encode(), "text/html; charset=utf-8")


def as_json(content: Any) -> Reply:
    return Reply(json.dumps(content, allow_nan=False).encode(), "application/json")


def file_within(folder: Path, path: str) -> Path:
    """The file or folder that `path` names below `folder`.

    Raises:
        Refused: it is hidden, absent, or, links followed, elsewhere.
    """
    name = path.strip("/")
    # No path, one too long for a file system, or links in a circle.
    with suppress(ValueError, OSError, RuntimeError):
        found = below(folder, name).resolve() if name else folder.resolve()
        if found.exists():
            return found
    raise Refused(404, "no such file")


def serve(host: str, port: int, get: Get, post: Post, *, allow_remote: bool = False, token: str = "") -> "Server":
    """A server that is bound and waits for `serve_forever`.

    Args:
        host: where to listen; a name or an address of this machine.
        port: 0 for any free one.
        get, post: what to answer. They are called in threads of their own.
        allow_remote: listen where other machines reach it as well.
        token: what a reader must know, by the address that he opens or the cookie that this leaves; none where empty.

    Raises:
        ValueError: the host is not of this machine alone and `allow_remote` was not given, or a port out of range.
        OSError: the host is unknown, or the port taken.
    """
    if not 0 <= port <= 65_535:
        raise ValueError(f"port must lie between 0 and 65535; got {port}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise OSError(f"host {host}: {error.strerror}") from None
    alone = ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    if not alone and not allow_remote:
        raise ValueError(
            f"host {host} can be reached from other machines, and whoever reaches it reads the folder and starts "
            "work on this machine; --allow-remote (allow_remote=True) says that this is meant"
        )
    # Names by which a browser may call this server; another means that somebody's page points its name here.
    names = {host.lower()} | ({"localhost", "127.0.0.1", "::1"} if alone else {socket.gethostname().lower()})
    try:
        return Server(family, (str(address[0]), port), get, post, frozenset(names), alone, token)
    except OSError as error:
        raise OSError(f"{host}, port {port}: {error.strerror}; choose another port") from None


class Server(ThreadingMixIn, TCPServer):
    """Bound to its address; `serve_forever` answers until `shutdown`."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self,
        family: int,
        address: tuple[str, int],
        get: Get,
        post: Post,
        names: frozenset[str],
        alone: bool,
        token: str,
    ) -> None:
        self.address_family = family
        self.get, self.post, self.names, self.alone, self.token = get, post, names, alone, token
        self.places = threading.BoundedSemaphore(MOST_READERS)
        super().__init__(address, _Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def address(self) -> str:
        """Where a browser finds it, with the token."""
        host = str(self.server_address[0])
        place = f"http://[{host}]:{self.port}/" if ":" in host else f"http://{host}:{self.port}/"
        return f"{place}?token={self.token}" if self.token else place

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; whoever comes while all are taken is turned away, and not kept waiting."""
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Readers who leave in the middle are no fault."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Arriving(RawIOBase):
    """What a client sends, until a time."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.ends = connection, math.inf

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "unbraid", ""
    # Seconds in which a whole request has to come, and in which each piece of a reply has to be taken.
    timeout: float = 60  # pyright: ignore[reportIncompatibleVariableOverride]

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.arriving = _Arriving(self.connection)
        self.rfile = BufferedReader(self.arriving)

    def handle_one_request(self) -> None:
        # Of the whole: who sends a byte now and then would else keep the thread for ever.
        self.arriving.ends = time.monotonic() + self.timeout
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer(self._page)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._answer(lambda: self.server.post(self._path(), self._content()))

    def _answer(self, find: Callable[[], Reply]) -> None:
        try:
            self._check_host()
            reply = self._admitted() or find()
        except (Refused, ValueError, OSError, ImportError) as error:
            # What is left of the request is not read, so the connection cannot go on.
            self.close_connection = True
            status = error.status if isinstance(error, Refused) else 500
            reply = Reply(f"{error}\n".encode(), "text/plain; charset=utf-8", status)
        with suppress(ConnectionError):  # the reader has left
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        self.connection.settimeout(self.timeout)
        tag = reply.headers.get("ETag")
        unchanged = tag is not None and self.headers.get("If-None-Match") == tag
        with BytesIO(reply.body) if isinstance(reply.body, bytes) else reply.body.open("rb") as content:
            size = content.seek(0, os.SEEK_END)
            self.send_response(304 if unchanged else reply.status)
            for name, value in {**HEADERS, **reply.headers}.items():
                self.send_header(name, value)
            if not unchanged:
                self.send_header("Content-Type", reply.kind)
                self.send_header("Content-Length", str(size))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if not unchanged and self.command != "HEAD":
                content.seek(0)
                while size and (part := content.read(min(size, PIECE))):  # no more than was said, should a file grow
                    size -= self.wfile.write(part)
                self.close_connection |= size > 0

    def _page(self) -> Reply:
        # Other people's pages neither embed ours nor have them computed; a link that the reader follows is his own.
        foreign = self.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}
        if foreign and self.headers.get("Sec-Fetch-User") != "?1":
            raise Refused(403, "only pages of this server may ask for that")
        return self.server.get(self._path())

    def _path(self) -> str:
        try:
            return unquote(_parts(self.path).path, errors="strict")
        except ValueError:
            raise Refused(400, "not an address") from None

    def _check_host(self) -> None:
        given = self.headers.get("Host", "")
        name = _parts(f"//{given}").hostname or ""
        if "@" not in given and name in self.server.names and self._own_port(given):
            return
        # Elsewhere than on this machine alone it has addresses that we do not know; a page's name is never one.
        if not self.server.alone and _is_address(name) and self._own_port(given):
            return
        raise Refused(421, "this server does not go by that name")

    def _admitted(self) -> Reply | None:
        """None for a reader who knows the token; who has it from the address is given a cookie, and sent on without it.

        Raises:
            Refused: he does not know it.
        """
        if not self.server.token:
            return None
        name = f"unbraid-{self.server.port}"  # cookies are told apart by host and name, not by port
        held = SimpleCookie()
        with suppress(CookieError):
            held.load(self.headers.get("Cookie", ""))
        if name in held and _same(held[name].value, self.server.token):
            return None
        asked = _parts(self.path)
        given = parse_qs(asked.query).get("token", [""])[0]
        if not _same(given, self.server.token) or self.command == "POST":
            raise Refused(403, "open the address that unbraid explore printed; it ends in a token")
        kept = f"{name}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
        place = quote(self._path().replace("\\", "/"))
        return Reply(b"", "text/plain", 303, {"Location": "/" + place.lstrip("/"), "Set-Cookie": kept})

    def _own_port(self, given: str) -> bool:
        try:
            return (urlsplit(f"//{given}").port or 80) == self.server.port
        except ValueError:
            return False

    def _content(self) -> Mapping[str, Any]:
        """The JSON of a POST that a page of ours sent."""
        if self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            raise Refused(403, "only pages of this server may ask for that")
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise Refused(403, "only pages of this server may ask for that")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "only JSON is understood")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused(411, "how long is it?")
        if int(length) > LARGEST_REQUEST:
            raise Refused(413, "that is too long")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except TimeoutError:
            raise Refused(408, "it did not come in time") from None
        except (ValueError, RecursionError):  # the second of what is nested a thousand deep
            raise Refused(400, "that is not JSON") from None
        if not isinstance(content, dict):
            raise Refused(400, "expected a JSON object")
        return content

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: what a page asks for every few seconds is of no interest on the terminal."""


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as a bracket that is left open
        raise Refused(400, "not an address") from None


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
