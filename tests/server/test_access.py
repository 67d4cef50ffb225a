"""Host, Origin and CORS, on both ports."""

import pytest

from neuroscope_jax.config import NeuroscopeConfig
from server.access import is_loopback
from server.ports import bind_ports


@pytest.fixture
def both(server):
    """The health route of each port."""
    return [f"{server.chat_url}/health", f"{server.features_url}/health"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:8000", "localhost.", "LocalHost.:1", "[::1]:8000"]
)
async def test_loopback_hosts(server, both, host):
    for url in both:
        assert (await server.http.get(url, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "x@localhost",
        "[::1",
        "",
    ],
)
async def test_foreign_hosts(server, both, host):
    for url in both:
        response = await server.http.get(url, headers={"Host": host})
        assert response.status_code == 403
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:3000", "tauri://localhost", "HTTP://LOCALHOST"],
)
async def test_pages_from_loopback(server, both, origin):
    for url in both:
        response = await server.http.get(url, headers={"Origin": origin})
        assert response.status_code == 200
        assert response.headers["Access-Control-Allow-Origin"] == origin
        assert "Origin" in response.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in response.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://", ""])
async def test_pages_from_elsewhere(server, both, origin):
    for url in both:
        for method in ("GET", "OPTIONS"):
            response = await server.http.request(method, url, headers={"Origin": origin})
            assert response.status_code == 403
            assert "Access-Control-Allow-Origin" not in response.headers


async def test_errors_can_be_read_by_pages_that_may(server):
    headers = {"Origin": "http://localhost:1"}
    response = await server.http.get(f"{server.chat_url}/nothing", headers=headers)
    assert response.status_code == 404
    assert response.headers["Access-Control-Allow-Origin"] == "http://localhost:1"


@pytest.mark.parametrize(
    ("port", "path"),
    [
        ("chat_url", "/v1/chat/completions"),
        ("chat_url", "/v1/models"),
        ("chat_url", "/health"),
        ("features_url", "/v1/features/stream"),
        ("features_url", "/v1/features/labels"),
        ("features_url", "/health"),
    ],
)
async def test_preflight_on_every_route(server, port, path):
    asked = "authorization,content-type,x-stainless-lang"
    response = await server.http.options(
        getattr(server, port) + path,
        headers={
            "Origin": "http://localhost:5173",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
        },
    )
    assert response.status_code == 204
    assert response.headers["Access-Control-Allow-Origin"] == "http://localhost:5173"
    assert response.headers["Access-Control-Allow-Methods"] == "GET, POST, OPTIONS"
    assert response.headers["Access-Control-Allow-Headers"] == asked


async def test_any_host_where_the_server_is_open_to_others(start_server, caplog):
    server = await start_server(host="0.0.0.0")
    response = await server.http.get(f"{server.chat_url}/health", headers={"Host": "my-machine:8080"})
    assert response.status_code == 200
    assert "--host 0.0.0.0" in caplog.text
    same = {"Host": "my-machine:8080", "Origin": "http://my-machine:8080"}
    assert (await server.http.get(f"{server.chat_url}/health", headers=same)).status_code == 200
    foreign = {"Host": "my-machine:8080", "Origin": "http://evil.example"}
    assert (await server.http.get(f"{server.chat_url}/health", headers=foreign)).status_code == 403


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("Localhost", True), ("127.8.8.8", True), ("0.0.0.0", False), ("box", False)],
)
def test_is_loopback(host, loopback):
    assert is_loopback(host) is loopback


def test_bound_host_shows_in_the_url():
    ports = bind_ports(NeuroscopeConfig(host="0.0.0.0", port=0, features_port=0))
    ports.close()
    assert ports.chat.url == f"http://127.0.0.1:{ports.chat.number}"
