"""What the server of a page refuses."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from unbraid.explore.jobs import Jobs
from unbraid.explore.server import Refused, Reply, Server, _Handler, as_json, file_within, html, serve


def get(path: str) -> Reply:
    if path == "/broken":
        raise ValueError("weights.safetensors is damaged")
    if path != "/":
        raise Refused(404, f"no {path}")
    return html("<p>é</p>")


def post(path: str, content: Mapping[str, Any]) -> Reply:
    return as_json({"path": path, **content})


@contextmanager
def served(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(serve("127.0.0.1", 0, get, post)) as server:
        yield server.port


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: str


def ask(port: int, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with closing(connection):
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        reply = connection.getresponse()
        return Answer(reply.status, dict(reply.headers), reply.read().decode())


def ours(port: int, **changes: str) -> dict[str, str]:
    own = f"127.0.0.1:{port}"
    return {"Host": own, "Origin": f"http://{own}", "Content_Type": "application/json"} | changes


def test_a_page_comes_with_the_policy_that_guards_it(port: int) -> None:
    reply = ask(port, "GET", "/?refresh=1")
    assert (reply.status, reply.body) == (200, "<p>é</p>")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert reply.headers["Server"].strip() == "unbraid"
    head = ask(port, "HEAD", "/")
    assert (head.status, head.body) == (200, "")


@pytest.mark.parametrize("name", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}"])
def test_it_goes_by_the_names_of_this_machine(port: int, name: str) -> None:
    assert ask(port, "GET", "/", Host=name.format(port)).status == 200


@pytest.mark.parametrize(
    "name",
    [
        "evil.example:{}",
        "evil.example",
        "localhost",
        "127.0.0.1:1",
        "localhost.evil.example:{}",
        "10.0.0.1:{}",
        "",
        "a:b",
    ],
)  # fmt: skip
def test_another_name_is_refused_so_that_no_page_can_point_its_own_here(port: int, name: str) -> None:
    reply = ask(port, "GET", "/", Host=name.format(port))
    assert reply.status == 421
    assert "é" not in reply.body


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/", "[", 400), ("/", "[::1", 400), ("/", "[::1]:x", 421), ("http://[/", "127.0.0.1:{}", 400)],
)
def test_an_address_that_is_none_is_the_readers_fault(port: int, path: str, host: str, status: int) -> None:
    assert ask(port, "GET", path, Host=host.format(port)).status == status


@pytest.mark.parametrize("name", ["x" * 5000, "a/" * 3000 + "b", "x" * 256])
def test_a_name_too_long_for_a_file_is_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no such file") as refused:
        file_within(tmp_path, name)
    assert refused.value.status == 404


def test_a_page_of_ours_may_post(port: int) -> None:
    reply = ask(port, "POST", "/score", '{"run": "a"}', **ours(port))
    assert (reply.status, json.loads(reply.body)) == (200, {"path": "/score", "run": "a"})


@pytest.mark.parametrize(
    ("changes", "body", "status"),
    [
        ({"Origin": "http://evil.example"}, "{}", 403),
        ({"Origin": "null"}, "{}", 403),
        ({"Origin": "https://127.0.0.1:{}"}, "{}", 403),
        ({"Origin": "http://127.0.0.1:1"}, "{}", 403),
        ({"Host": "evil.example:{}", "Origin": "http://evil.example:{}"}, "{}", 421),
        ({"Sec_Fetch_Site": "cross-site"}, "{}", 403),
        ({"Content_Type": "text/plain"}, "{}", 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, "{}", 415),
        ({"Content_Length": "65537"}, "{}", 413),
        ({"Content_Length": "-1"}, "{}", 411),
        ({}, "{", 400),
        ({}, "[]", 400),
        ({}, '{"run":' * 5000, 400),
    ],
)
def test_what_else_posts_is_refused(port: int, changes: dict[str, str], body: str, status: int) -> None:
    headers = ours(port, **{name: value.format(port) for name, value in changes.items()})
    assert ask(port, "POST", "/score", body, **headers).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_User": "?1"}, 200),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "none"}, 200),
    ],
)
def test_other_peoples_pages_have_nothing_computed_but_a_link_may_be_followed(
    port: int, headers: dict[str, str], status: int
) -> None:
    assert ask(port, "GET", "/", **headers).status == status


def test_without_an_origin_nothing_is_posted(port: int) -> None:
    assert ask(port, "POST", "/score", "{}", Content_Type="application/json").status == 403


def test_faults_of_the_folder_are_told_and_the_server_goes_on(port: int) -> None:
    reply = ask(port, "GET", "/broken")
    assert (reply.status, reply.body) == (500, "weights.safetensors is damaged\n")
    assert ask(port, "GET", "/%ff").status == 400
    assert ask(port, "PUT", "/").status == 501
    assert ask(port, "GET", "/").status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_elsewhere_than_here_it_listens_only_when_told(host: str) -> None:
    with pytest.raises(ValueError, match=r"--allow-remote \(allow_remote=True\) says"):
        serve(host, 0, get, post)


def test_told_to_it_answers_to_addresses_but_to_no_strange_name() -> None:
    with served(serve("0.0.0.0", 0, get, post, allow_remote=True)) as server:
        port = server.port
        assert ask(port, "GET", "/", Host=f"192.0.2.7:{port}").status == 200
        assert ask(port, "GET", "/", Host=f"evil.example:{port}").status == 421


def test_nobody_is_answered_without_the_token() -> None:
    with served(serve("127.0.0.1", 0, get, post, token="s3cret")) as server:
        port = server.port
        assert server.address == f"http://127.0.0.1:{port}/?token=s3cret"
        first = ask(port, "GET", "/?token=s3cret")
        cookie = f"unbraid-{port}=s3cret"
        assert (first.status, first.headers["Location"], first.body) == (303, "/", "")
        assert first.headers["Set-Cookie"] == f"{cookie}; Path=/; HttpOnly; SameSite=Strict"
        assert ask(port, "GET", "/", Cookie=f"other=1; {cookie}").body == "<p>é</p>"
        assert ask(port, "POST", "/score", "{}", Cookie=cookie, **ours(port)).status == 200
        for wrong in ("", "unbraid-1=s3cret", f"unbraid-{port}=s3cre", f"unbraid-{port}=", "\x01;=;", f'"{cookie}'):
            reply = ask(port, "GET", "/", Cookie=wrong)
            assert (reply.status, "é" in reply.body) == (403, False)
            assert ask(port, "POST", "/score", "{}", Cookie=wrong, **ours(port)).status == 403
        for path in ("/", "/?token=", "/?token=s3cre", "/?token=s3cret2", "/?Token=s3cret", "/?token=x&token=s3cret"):
            assert ask(port, "GET", path).status == 403
        assert ask(port, "POST", "/score?token=s3cret", "{}", **ours(port)).status == 403
        assert ask(port, "GET", "/?token=s3cret", Host="evil.example").status == 421
        for path in ("//evil.example/a", "/\\evil.example", "/%0d%0aX:y"):  # it sends nobody elsewhere
            place = ask(port, "GET", f"{path}?token=s3cret").headers["Location"]
            assert place[0] == "/" != place[1:2]
            assert "\n" not in place


def test_more_readers_than_there_are_places_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.explore.server.MOST_READERS", 2)
    with served(serve("127.0.0.1", 0, get, post)) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        assert any(turned_away(server.port) for _ in range(100))  # once both are seen to be there
        for each in silent:
            each.close()
        assert not all(turned_away(server.port) for _ in range(100_000))  # once both are seen to have left


def turned_away(port: int) -> bool:
    try:
        return ask(port, "GET", "/").status != 200
    except ConnectionError:
        return True


def test_ports_and_hosts_that_cannot_be(port: int) -> None:
    with pytest.raises(OSError, match=f"127.0.0.1, port {port}: .*in use; choose another port"):
        serve("127.0.0.1", port, get, post)
    with pytest.raises(ValueError, match="port must lie between 0 and 65535; got 70000"):
        serve("127.0.0.1", 70_000, get, post)
    with pytest.raises(OSError, match="host no.such.host.invalid: "):
        serve("no.such.host.invalid", 0, get, post)


def test_the_address_is_one_a_browser_understands() -> None:
    with served(serve("::1", 0, get, post)) as server:
        assert server.address == f"http://[::1]:{server.port}/"


def test_files_are_those_of_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "runs").mkdir(parents=True)
    outside.mkdir()
    for file in (inside / "runs" / "a.json", inside / ".lock", outside / "secret"):
        file.write_text("{}")
    (inside / "out").symlink_to(outside)
    (inside / "secret").symlink_to(outside / "secret")
    (inside / "loop").symlink_to(inside / "loop2")
    (inside / "loop2").symlink_to(inside / "loop")
    (inside / "own").symlink_to(inside / "runs")
    (inside / "shown").symlink_to(inside / ".lock")
    (tmp_path / "inside2").mkdir()
    assert file_within(inside, "runs/a.json").read_text() == "{}"
    assert file_within(inside, "own/a.json") == inside / "runs" / "a.json"
    assert file_within(inside, "/") == inside
    outsiders = [
        "..", "../outside/secret", "runs/../../outside/secret", "/../outside", "out", "out/secret", "secret", "loop",
        ".lock", "runs/./a.json", "..\\outside", "../inside2", "runs/a.json\0", "none", str(outside / "secret"),
        "shown", "C:/x",
    ]  # fmt: skip
    for path in outsiders:
        with pytest.raises(Refused):
            file_within(inside, path)


def test_jobs_are_done_one_after_the_other_and_asked_for_once() -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[tuple[str, str]] = []

    def work(run: str, metric: str) -> str:
        begun.set()
        assert go.wait(10)
        done.append((run, metric))
        if metric == "bad":
            raise ValueError("cannot")
        return "a remark" if metric == "odd" else ""

    jobs = Jobs(work)
    for metric in ("mig", "bad", "odd", "mig"):
        jobs.add("a", metric)
    assert begun.wait(10)
    assert [job["state"] for job in jobs.listed()] == ["working", "waiting", "waiting"]
    go.set()
    jobs.join()
    assert done == [("a", "mig"), ("a", "bad"), ("a", "odd")]
    assert [(job["state"], job["reason"]) for job in jobs.listed()] == [
        ("done", ""), ("failed", "cannot"), ("done", "a remark"),
    ]  # fmt: skip
    jobs.add("a", "mig")
    jobs.join()
    assert len(done) == 4


@pytest.mark.lengthy
def test_a_request_that_comes_a_byte_at_a_time_is_ended_by_its_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Handler, "timeout", 0.3)
    with served(serve("127.0.0.1", 0, get, post)) as server:
        own = "\r\n".join(f"{name.replace('_', '-')}: {value}" for name, value in ours(server.port).items())
        heads = (
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nX: ",
            f"POST / HTTP/1.1\r\n{own}\r\nContent-Length: 9999\r\n\r\n",
        )
        for head in ("G", *heads):  # in the line, between headers, in one, in the content
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as slow:
                slow.sendall(head.encode())
                slow.settimeout(0.02)
                said, sent = b"", 0
                while sent < 400:
                    try:
                        slow.sendall(b" ")
                        sent += 1
                        if not (part := slow.recv(1000)):
                            break
                        said += part
                    except TimeoutError:
                        continue
                    except ConnectionError:
                        break
                assert sent < 400  # it would take 8 seconds
                assert (b"408" in said) == head.startswith("POST")
        # Whoever speaks at once may do so again on the same connection, however long ago it was made.
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        with closing(connection):
            for _ in range(3):
                connection.request("GET", "/")
                assert connection.getresponse().read().decode() == "<p>é</p>"
                time.sleep(0.15)
