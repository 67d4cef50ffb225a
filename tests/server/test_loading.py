"""Both ports from the moment they open: before there is a model, and where there never is one."""

import asyncio
import threading

import httpx
import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from server.app import run, serve_when
from server.ports import bind_ports
from server.state import ServerState
from tests.server.conftest import FakeEngine, FakeLabels, FakeTokenizer

CONFIG = NeuroscopeConfig(model_id="demo", port=0, features_port=0, api_key="sesame")
KEY = {"Authorization": "Bearer sesame"}


@pytest.fixture
async def opened():
    """Ports that are open while a future is still to give the state; and the task that serves."""
    ports, stop, loaded = bind_ports(CONFIG), asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_when(loaded, CONFIG, ports, stop))
    await asyncio.sleep(0)
    yield ports, stop, loaded, task
    stop.set()
    await asyncio.wait([task])


async def test_everybody_is_told_to_wait_then_served(opened):
    ports, _, loaded, _ = opened
    chat, features = f"{ports.chat.url}/v1/chat/completions", f"{ports.features.url}/v1/features/stream"
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
    async with httpx.AsyncClient(timeout=20, headers=KEY) as http:
        for url in (f"{ports.chat.url}/health", f"{ports.features.url}/health", features):
            response = await http.get(url)
            assert (response.status_code, response.json()["error"]["code"]) == (503, "loading")
            assert int(response.headers["Retry-After"]) > 0
        assert (await http.post(chat, json=body)).json()["error"]["code"] == "loading"
        assert (await http.head(f"{ports.chat.url}/health", headers={"Authorization": ""})).status_code == 503
        assert (await http.post(chat, json=body, headers={"Authorization": "Bearer no"})).status_code == 401
        assert (await http.get(features, headers={"Host": "evil.example"})).status_code == 403
        engine = FakeEngine()
        try:
            loaded.set_result(ServerState(CONFIG, engine, FakeTokenizer(), FakeLabels()))
            while (await http.get(f"{ports.chat.url}/health")).status_code == 503:
                await asyncio.sleep(0.01)
            assert (await http.post(chat, json=body)).json()["choices"][0]["message"]["content"] == "b"
            assert (await http.get(f"{ports.features.url}/v1/features/labels")).status_code == 200
        finally:
            engine.close()


async def test_the_end_may_come_before_the_model(opened):
    ports, stop, _, task = opened
    stop.set()
    async with asyncio.timeout(20):
        assert await task is None
    async with httpx.AsyncClient() as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"{ports.chat.url}/health")


async def test_no_port_stays_open_where_there_is_no_model(opened):
    ports, _, loaded, task = opened
    loaded.set_exception(UserError("no such model"))
    with pytest.raises(UserError, match="no such model"):
        await task
    async with httpx.AsyncClient() as http:
        for port in (ports.chat, ports.features):
            with pytest.raises(httpx.ConnectError):
                await http.get(f"{port.url}/health")


def test_what_loading_raises_is_raised_to_the_command():
    seen = []

    def load():
        seen.append((threading.current_thread() is threading.main_thread(), httpx.get(f"{url}/health").status_code))
        raise UserError("the weights are damaged")

    ports = bind_ports(CONFIG)
    url = ports.chat.url
    with pytest.raises(UserError, match="damaged"):
        run(CONFIG, load, ports)
    assert seen == [(False, 503)]
