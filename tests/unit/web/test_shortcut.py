"""The shortcut finds what the router finds, and leaves it everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from fairdrop.web.data_plane.base import Endpoint, Steps, endpoint
from fairdrop.web.shortcut import Shortcut
from fairdrop.web.wire import send_json

if TYPE_CHECKING:
    from fairdrop.web.wire import Message, Receive, Scope, Send


def told(name: str) -> Endpoint:
    async def handler(_parts: object, scope: Scope, _receive: Receive, send: Send) -> None:
        params = dict(scope["path_params"])
        params.pop("step", None)
        await send_json(send, f"{name} {scope['route'].path} {params}".encode())

    return endpoint(cast("Any", None), handler, limited=False)


def application() -> Starlette:
    steps = Steps({("POST", "join"): told("join"), ("GET", "me"): told("me")})
    return Starlette(
        routes=[
            Route("/v1/sales/{sale}/{step}", steps),
            Route("/v1/sales/{sale}", told("sale"), methods=["GET"]),
            Route("/v1/orders/{order}/pay", told("pay"), methods=["POST"]),
            Route("/v1/sales/{sale}/reservations/{id}", told("release"), methods=["DELETE"]),
            Route("/v1/sales", told("sales"), methods=["GET"]),
        ]
    )


async def answer(app: Any, method: str, path: str) -> tuple[int, bytes]:
    status, body = 0, b""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    await app({**scope, "root_path": ""}, receive, send)
    return status, body


FOUND = [
    ("POST", "/v1/sales/a/join"),
    ("GET", "/v1/sales/a/me"),
    ("GET", "/v1/sales/a"),
    ("POST", "/v1/orders/o/pay"),
]
LEFT = [
    ("GET", "/v1/sales/a/join"),
    ("GET", "/v1/sales/a/"),
    ("GET", "/v1/sales//me"),
    ("GET", "/v1/sales/a/me/"),
    ("POST", "/v1/orders/o/pay/"),
    ("POST", "/v1/orders/o"),
    ("HEAD", "/v1/sales/a"),
    ("DELETE", "/v1/sales/a/reservations/r"),
    ("GET", "/v1/sales"),
    ("GET", "/v1/"),
    ("GET", "/v2/sales/a"),
]


@pytest.mark.parametrize(("method", "path"), FOUND + LEFT)
async def test_the_answer_is_the_routers(method: str, path: str) -> None:
    app = application()
    assert await answer(Shortcut(app), method, path) == await answer(app, method, path)


@pytest.mark.parametrize(("method", "path"), FOUND)
async def test_plain_addresses_do_not_reach_the_router(method: str, path: str) -> None:
    shortcut = Shortcut(application())

    async def router(*_: object) -> None:
        raise AssertionError("the router was asked")

    shortcut._app = cast("Any", router)
    status, _ = await answer(shortcut, method, path)
    assert status == 200


@pytest.mark.parametrize(("method", "path"), FOUND + LEFT)
async def test_an_address_met_before_is_answered_as_the_first_time(method: str, path: str) -> None:
    shortcut = Shortcut(application())
    first = await answer(shortcut, method, path)
    assert await answer(shortcut, method, path) == first
    assert await answer(shortcut, "PUT", path) == await answer(application(), "PUT", path)


async def test_made_up_addresses_take_a_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairdrop.web.shortcut._REMEMBERED", 8)
    shortcut = Shortcut(application())
    for number in range(50):
        for noun in ("sales", "orders"):
            step = "join" if noun == "sales" else "pay"
            assert (await answer(shortcut, "POST", f"/v1/{noun}/n{number}/{step}"))[0] == 200
    assert 0 < len(shortcut._met) <= 8
    await answer(shortcut, "POST", f"/v1/sales/{'x' * 5_000}/join")
    assert all(len(path) < 1_000 for _, path in shortcut._met)
    assert all("orders" not in path for _, path in shortcut._met)
