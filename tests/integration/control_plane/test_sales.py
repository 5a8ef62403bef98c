"""Setting sales up, changing and steering them (W17, H9)."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from fairdrop.app import Parts
from tests.integration.control_plane.own_parts import a_sale, created, opened, problem

SALES = "/admin/v1/sales"


async def test_a_sale_is_created_with_the_defaults_of_the_specification(
    client: httpx.AsyncClient,
) -> None:
    sale = await created(client)
    got = (await client.get(f"{SALES}/{sale['id']}")).json()
    assert got == sale
    assert (got["rate_per_s"], got["hold_ttl_ms"], got["claim_ttl_ms"]) == (50.0, 600_000, 60_000)
    assert (got["lease_ttl_ms"], got["payment_ttl_ms"], got["fee_bps"]) == (300_000, 300_000, 1_000)
    assert (got["mode"], got["loaded"], got["accept_late"]) == ("scheduled", True, True)
    assert [variant["quantity"] for variant in got["variants"]] == [10, 5]


async def test_the_answer_to_creating_says_where_the_sale_is(client: httpx.AsyncClient) -> None:
    answer = await client.post(SALES, json=a_sale())
    assert answer.headers["location"] == f"{SALES}/{answer.json()['id']}"
    assert (await client.get(answer.headers["location"])).json() == answer.json()


async def test_a_created_sale_can_be_joined_as_soon_as_it_is_opened(
    client: httpx.AsyncClient,
) -> None:
    sale = await opened(client)
    joined = await client.post(f"/v1/sales/{sale['slug']}/join", headers={"authorization": ""})
    assert joined.status_code == 200, joined.text
    assert joined.json()["state"] == "WAITING"


async def test_a_sale_is_found_by_its_slug_too(client: httpx.AsyncClient) -> None:
    sale = await created(client)
    assert (await client.get(f"{SALES}/{sale['slug']}")).json()["id"] == sale["id"]


async def test_a_sale_is_found_although_its_slug_was_asked_for_before_it_was_there(
    client: httpx.AsyncClient,
) -> None:
    body = a_sale()
    problem(await client.get(f"{SALES}/{body['slug']}"), 404, "no_such_sale")
    await client.post(SALES, json=body)
    assert (await client.get(f"{SALES}/{body['slug']}")).status_code == 200


async def test_the_newest_sales_come_first(client: httpx.AsyncClient) -> None:
    ids = [(await created(client))["id"] for _ in range(3)]
    listed = (await client.get(SALES, params={"limit": 2})).json()["sales"]
    assert [sale["id"] for sale in listed] == ids[:0:-1]


async def test_a_taken_slug_is_refused_and_names_the_sale_that_has_it(
    client: httpx.AsyncClient,
) -> None:
    sale = await created(client)
    answer = await client.post(SALES, json=a_sale(slug=sale["slug"], name="Another"))
    assert problem(answer, 409, "slug_taken")["sale"] == sale["id"]


NAMES = [
    "🎸 Konzert 🎟️ 家族👩‍👩‍👧",
    "北京演唱会",
    "حفلة موسيقية في دبي",
    "x" * 300,
    "\u202e\u202bmixed\u202c שלום",
    "O'Brien & <b>Söhne</b>",
]


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_in_any_script_is_stored_and_shown_as_it_was_given(
    client: httpx.AsyncClient, name: str
) -> None:
    variants = [{"product": name, "name": name, "price_minor": 1, "quantity": 1}]
    sale = await created(client, name=name, description=f"{name}\n\t{name}", variants=variants)
    public = (await client.get(f"/v1/sales/{sale['slug']}")).json()
    for document in (sale, public, (await client.get(f"{SALES}/{sale['id']}")).json()):
        assert document["name"] == name
        assert document["description"] == f"{name}\n\t{name}"
        assert (document["variants"][0]["product"], document["variants"][0]["name"]) == (name, name)


def variant(**more: Any) -> dict[str, Any]:
    return {"product": "T", "name": "V", "price_minor": 1, "quantity": 1, **more}


REFUSED: list[tuple[str, Any]] = [
    ("slug", "Not a slug"),
    ("slug", "-edge"),
    ("slug", "a" * 65),
    ("slug", "new\n"),
    ("name", ""),
    ("name", "   "),
    ("name", "x" * 301),
    ("name", "two\nlines"),
    ("name", "bell\x07"),
    ("name", "nul\x00"),
    ("name", "\ud83d"),
    ("name", 5),
    ("description", "x" * 5_001),
    ("description", "esc \x1b[31m"),
    ("currency", "eur"),
    ("currency", "EURO"),
    ("timezone", "Mars/Olympus"),
    ("timezone", "../../etc/passwd"),
    ("timezone", "\x00"),
    ("currency", "EUX"),
    ("opens_at", "tomorrow"),
    ("opens_at", "2026-02-30T10:00"),
    ("opens_at", "2026-02-20"),
    ("opens_at", "0001-01-01T00:00:00+23:59"),
    ("opens_at", 1_800_000_000),
    ("rate_per_s", 0),
    ("rate_per_s", -1),
    ("rate_per_s", 1e300),
    ("rate_per_s", "50"),
    ("rate_per_s", True),
    ("cap", 0),
    ("cap", 2**63),
    ("cap", 1.5),
    ("claim_ttl_ms", 0),
    ("hold_ttl_ms", 10**12),
    ("order_limit", 0),
    ("buyer_limit", 0),
    ("fee_bps", 10_001),
    ("fee_bps", -1),
    ("accept_late", 1),
    ("payment_attempts", 0),
    ("gateway", "no such gateway"),
    ("variants", []),
    ("variants", [variant()] * 101),
    ("variants", [variant(price_minor=-1)]),
    ("variants", [variant(quantity=-1)]),
    ("variants", [variant(quantity=2**31)]),
    ("variants", [variant(price_minor=2**63)]),
    ("variants", [variant(serial=1)]),
    ("unknown", "field"),
]


@pytest.mark.parametrize(("field", "value"), REFUSED)
async def test_what_is_no_sale_is_refused_by_name_and_leaves_nothing(
    client: httpx.AsyncClient, field: str, value: object
) -> None:
    body = a_sale()
    answer = await client.post(
        SALES,
        content=_json({**body, field: value}),
        headers={"content-type": "application/json"},
    )
    document = problem(answer, 422, "invalid_request")
    assert document["errors"][0]["field"].startswith(f"body.{field}"), document
    assert (await client.get(f"{SALES}/{body['slug']}")).status_code == 404


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


async def test_a_hundred_variants_with_the_longest_names_are_taken(
    client: httpx.AsyncClient,
) -> None:
    long = "名" * 300
    sale = await created(client, variants=[variant(product=long, name=long)] * 100)
    assert len(sale["variants"]) == 100


# ------------------------------------------------------------------ change


async def test_a_change_is_in_force_at_once_for_everybody(client: httpx.AsyncClient) -> None:
    sale = await opened(client)
    answer = await client.patch(
        f"{SALES}/{sale['id']}", json={"rate_per_s": 7.5, "cap": 3, "name": "Renamed"}
    )
    assert answer.status_code == 200
    assert answer.json()["version"] > sale["version"]
    public = (await client.get(f"/v1/sales/{sale['slug']}")).json()
    assert (public["rate_per_s"], public["name"]) == (7.5, "Renamed")
    figures = (await client.get(f"{SALES}/{sale['id']}/figures")).json()
    assert (figures["rate_per_s"], figures["cap"]) == (7.5, 3)


async def test_a_change_leaves_the_mode_that_the_clock_has_set(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await created(client, opens_at="2020-01-01T00:00:00Z")
    known = await parts.catalog.sale(sale["id"])
    assert known is not None
    await parts.waiting_room.tick(known.ref)
    changed = await client.patch(f"{SALES}/{sale['id']}", json={"cap": 3})
    await parts.waiting_room.tick(known.ref)
    assert changed.json()["cap"] == 3
    assert (await client.get(f"{SALES}/{sale['id']}")).json()["mode"] == "open"


async def test_saving_what_is_there_changes_nothing(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await created(client)
    for body in ({}, {"name": sale["name"], "opens_at": sale["opens_at"], "timezone": "UTC"}):
        answer = await client.patch(f"{SALES}/{sale['id']}", json=body)
        assert answer.json() == sale
    assert [row["action"] for row in await audit_rows(parts, sale)] == ["create"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": None},
        {"slug": "other"},
        {"currency": "USD"},
        {"fee_bps": 0},
        {"timezone": "Europe/Zurich"},
        {"closes_at": "2000-01-01T00:00Z"},
        {"cap": 0},
        [],
        "text",
        5,
    ],
)
async def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, body: object
) -> None:
    sale = await created(client)
    answer = await client.patch(f"{SALES}/{sale['id']}", json=body)
    problem(answer, 422, "invalid_request")
    assert (await client.get(f"{SALES}/{sale['id']}")).json() == sale


async def test_the_opening_time_stays_once_the_sale_has_opened(client: httpx.AsyncClient) -> None:
    sale = await opened(client)
    answer = await client.patch(f"{SALES}/{sale['id']}", json={"opens_at": "2030-01-01T00:00Z"})
    assert problem(answer, 409, "already_opened")["mode"] == "open"


# ------------------------------------------------------------------ steering


async def test_a_sale_goes_through_its_modes_and_every_step_is_audited(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await created(client)
    for verb, mode in [
        ("open", "open"),
        ("pause", "paused"),
        ("resume", "open"),
        ("drain", "draining"),
        ("resume", "open"),
        ("close", "closed"),
        ("open", "open"),
    ]:
        answer = await client.post(f"{SALES}/{sale['id']}/{verb}")
        assert (answer.status_code, answer.json()["mode"]) == (200, mode)
        # The store has followed: buyers see it.
        assert (await client.get(f"/v1/sales/{sale['id']}")).json()["mode"] == mode
    rows = await audit_rows(parts, sale)
    assert [row["action"] for row in rows] == [
        "create",
        *("open", "pause", "resume", "drain", "resume", "close", "open"),
    ]
    assert {row["actor"] for row in rows} == {"api"}


@pytest.mark.parametrize(
    ("path", "verb", "mode"),
    [
        ([], "pause", "scheduled"),
        ([], "resume", "scheduled"),
        (["open"], "open", "open"),
        (["open"], "resume", "open"),
        (["open", "pause"], "pause", "paused"),
        (["close"], "close", "closed"),
        (["close"], "drain", "closed"),
    ],
)
async def test_steering_that_the_mode_does_not_allow_is_refused_with_the_mode(
    client: httpx.AsyncClient, path: list[str], verb: str, mode: str
) -> None:
    sale = await created(client)
    for step in path:
        await client.post(f"{SALES}/{sale['id']}/{step}")
    answer = await client.post(f"{SALES}/{sale['id']}/{verb}")
    assert problem(answer, 409, "wrong_mode")["mode"] == mode


async def test_a_sale_that_the_clock_has_just_opened_can_be_paused(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await created(client, opens_at="2020-01-01T00:00:00Z")
    known = await parts.catalog.sale(sale["id"])
    assert known is not None
    assert (await parts.waiting_room.tick(known.ref)).mode == "open"
    answer = await client.post(f"{SALES}/{sale['id']}/pause")
    assert (answer.status_code, answer.json()["mode"]) == (200, "paused")


async def test_a_sale_whose_closing_time_has_passed_opens_only_after_changing_it(
    client: httpx.AsyncClient,
) -> None:
    times = {"opens_at": "2020-01-01T00:00Z", "closes_at": "2020-01-02T00:00Z"}
    sale = await created(client, **times)
    problem(await client.post(f"{SALES}/{sale['id']}/open"), 409, "past_closing_time")
    await client.patch(f"{SALES}/{sale['id']}", json={"closes_at": "2090-01-01T00:00Z"})
    assert (await client.post(f"{SALES}/{sale['id']}/open")).status_code == 200


async def test_two_operators_who_pause_at_once_are_told_who_was_first(
    client: httpx.AsyncClient,
) -> None:
    sale = await opened(client)
    pause = f"{SALES}/{sale['id']}/pause"
    answers = await asyncio.gather(*(client.post(pause) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]


# ------------------------------------------------------------------ stock


async def stock(client: httpx.AsyncClient, sale: Any, index: int, delta: int) -> httpx.Response:
    variant_id = sale["variants"][index]["id"]
    return await client.post(
        f"{SALES}/{sale['id']}/variants/{variant_id}/stock", json={"delta": delta}
    )


async def test_more_stock_is_on_sale_at_once(client: httpx.AsyncClient) -> None:
    sale = await opened(client)
    answer = await stock(client, sale, 0, 7)
    assert answer.status_code == 200
    assert (answer.json()["quantity"], answer.json()["free"]) == (17, 17)
    public = (await client.get(f"/v1/sales/{sale['id']}")).json()
    assert public["variants"][0]["free"] == 17
    assert (await client.get(f"{SALES}/{sale['id']}")).json()["variants"][0]["quantity"] == 17


async def test_less_stock_takes_free_units_out_and_never_more(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    answer = await stock(client, sale, 1, -3)
    assert (answer.json()["quantity"], answer.json()["free"]) == (2, 2)
    refused = await stock(client, sale, 1, -3)
    assert problem(refused, 409, "too_few_free")["free"] == 2
    # The units that are gone stay gone when the store is filled anew.
    await parts.store.redis.delete(f"fd:{{{sale['id']}}}:1:cfg")
    again = await stock(client, sale, 1, 1)
    assert (again.json()["quantity"], again.json()["free"]) == (3, 3)


async def test_stock_changes_are_audited(client: httpx.AsyncClient, parts: Parts) -> None:
    sale = await created(client)
    await stock(client, sale, 0, 7)
    await stock(client, sale, 0, -2)
    rows = (await audit_rows(parts, sale))[1:]
    assert [(row["action"], row["detail"]["units"]) for row in rows] == [
        ("add_stock", 7),
        ("reduce_stock", 2),
    ]


async def test_a_change_of_stock_with_a_key_is_made_once(client: httpx.AsyncClient) -> None:
    sale = await opened(client)
    path = f"{SALES}/{sale['id']}/variants/{sale['variants'][0]['id']}/stock"
    for delta, quantity in ((5, 15), (-2, 13)):
        headers = {"idempotency-key": f"key{delta}"}
        for _ in range(2):
            answer = await client.post(path, headers=headers, json={"delta": delta})
            assert answer.json()["quantity"] == quantity
        other = await client.post(path, headers=headers, json={"delta": 1})
        problem(other, 422, "idempotency_key_reused")
    bad = await client.post(path, headers={"idempotency-key": "no key"}, json={"delta": 1})
    problem(bad, 400, "idempotency_key_malformed")


async def test_stock_can_be_set_as_a_list(client: httpx.AsyncClient, parts: Parts) -> None:
    sale = await opened(client)
    path = f"{SALES}/{sale['id']}/stock"
    listed = [{"variant": "Standing", "units": 12}, {"variant": "Ticket, Seat", "units": 2}]
    for _ in range(2):
        answer = await client.post(path, json={"stock": listed, "source": "file stock.csv"})
        assert answer.status_code == 200, answer.text
        assert [(v["quantity"], v["free"]) for v in answer.json()["variants"]] == [(12, 12), (2, 2)]
    for wrong in ([*listed, {"variant": "Box", "units": 1}], listed * 2, []):
        refused = await client.post(path, json={"stock": wrong})
        problem(refused, 422, "invalid_request")
    async with parts.database.connection() as connection:
        sources = await connection.fetch(
            "SELECT detail FROM operator_audit WHERE sale_id = $1::text::uuid"
            " AND action LIKE '%stock'",
            sale["id"],
        )
    assert [row["detail"]["source"] for row in sources] == ["file stock.csv"] * 2


async def test_a_sale_waits_for_a_warehouse_only_where_there_is_one(
    client: httpx.AsyncClient,
) -> None:
    refused = await client.post(SALES, json=a_sale(stock_source="warehouse"))
    problem(refused, 422, "invalid_request")
    sale = await created(client)
    path = f"{SALES}/{sale['id']}"
    problem(await client.patch(path, json={"stock_source": "warehouse"}), 422, "invalid_request")
    assert (await client.get(f"{path}/figures")).json()["stock_load"] is None


async def test_the_safety_buffer_is_nobodys_to_buy_and_told_to_operators(
    client: httpx.AsyncClient,
) -> None:
    sale = await opened(client, buffer_percent=10)
    stock = (await client.get(f"{SALES}/{sale['id']}/figures")).json()["variants"]
    assert [(v["quantity"], v["free"], v["buffer"]) for v in stock] == [(10, 9, 1), (5, 4, 1)]
    public = (await client.get(f"/v1/sales/{sale['slug']}")).json()["variants"]
    assert [(v["total"], v["free"]) for v in public] == [(9, 9), (4, 4)]
    await client.patch(f"{SALES}/{sale['id']}", json={"buffer_percent": 0})
    stock = (await client.get(f"{SALES}/{sale['id']}/figures")).json()["variants"]
    assert [(v["free"], v["buffer"]) for v in stock] == [(10, 0), (5, 0)]


@pytest.mark.parametrize("delta", [0, -100_001, 10_000_001, 10_000_000, 1.5, "1", None])
async def test_a_change_of_stock_that_cannot_be_is_refused(
    client: httpx.AsyncClient, delta: Any
) -> None:
    sale = await created(client)
    problem(await stock(client, sale, 0, delta), 422, "invalid_request")
    assert (await client.get(f"{SALES}/{sale['id']}")).json() == sale


async def test_a_variant_of_another_sale_is_not_touched(client: httpx.AsyncClient) -> None:
    sale, other = await created(client), await created(client)
    path = f"{SALES}/{sale['id']}/variants/{other['variants'][0]['id']}/stock"
    problem(await client.post(path, json={"delta": 1}), 404, "no_such_variant")
    problem(await client.post(path, json={"delta": -1}), 404, "no_such_variant")


async def audit_rows(parts: Parts, sale: Any) -> list[Any]:
    sql = "SELECT * FROM operator_audit WHERE sale_id = $1 ORDER BY id"
    async with parts.database.connection() as connection:
        return list(await connection.fetch(sql, UUID(sale["id"])))
