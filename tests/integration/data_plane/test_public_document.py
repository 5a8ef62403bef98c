"""One document of a sale for everybody, which any cache may keep for a second (W6)."""

from __future__ import annotations

import asyncio

import httpx

from fairdrop.app import Parts
from fairdrop.ids import new_secret_id
from tests.integration.control_plane.own_parts import opened


async def loaded(client: httpx.AsyncClient, parts: Parts) -> str:
    sale = await opened(client)
    found = await parts.catalog.sale(sale["id"])
    assert found is not None
    await parts.loader.keep_loaded(found)
    return found.id


async def test_the_document_tells_all_that_a_place_is_reckoned_from(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """W6: mode, the number now served, the tail, total waiting, measured rate, stock, server time."""
    sale = await loaded(client, parts)
    answer = await client.get(f"/v1/sales/{sale}")
    assert answer.headers["cache-control"].startswith("public, max-age=1, stale-while-revalidate")
    assert "set-cookie" not in answer.headers
    document = answer.json()
    assert document["mode"] == "open"
    assert {"served", "tail", "waiting", "measured_rate_per_s", "server_time_ms"} <= document.keys()
    assert [variant["free"] for variant in document["variants"]] == [10, 5]
    assert document["epoch"] == 1
    assert document["push_url"] is None


async def test_a_copy_that_is_still_right_is_not_sent_again(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """W6: time alone makes no new document; a change does."""
    sale = await loaded(client, parts)
    address = f"/v1/sales/{sale}"
    first = await client.get(address)
    tag = first.headers["etag"]
    async with asyncio.timeout(20):
        while (again := await client.get(address)).json()["server_time_ms"] == first.json()[
            "server_time_ms"
        ]:
            await asyncio.sleep(0.02)
    assert again.headers["etag"] == tag
    for asked in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        kept = await client.get(address, headers={"if-none-match": asked})
        assert (kept.status_code, kept.content) == (304, b""), asked
        assert kept.headers["etag"] == tag
        assert kept.headers["cache-control"] == first.headers["cache-control"]
    found = await parts.catalog.sale(sale)
    assert found is not None
    await parts.waiting_room.join(found.ref, new_secret_id())
    async with asyncio.timeout(20):
        while (await client.get(address, headers={"if-none-match": tag})).status_code == 304:
            await asyncio.sleep(0.02)


async def test_a_copy_from_before_a_reset_is_never_right(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """Case 3: the tag and the document name the epoch, so the same figures are another document."""
    sale = await loaded(client, parts)
    before = await client.get(f"/v1/sales/{sale}")
    async with parts.database.connection() as connection:
        await connection.execute("UPDATE sales SET epoch = epoch + 1 WHERE id = $1", sale)
    parts.catalog.forget(sale)
    found = await parts.catalog.sale(sale)
    assert found is not None
    await parts.loader.keep_loaded(found)
    after = await client.get(f"/v1/sales/{sale}", headers={"if-none-match": before.headers["etag"]})
    assert after.status_code == 200
    assert after.json()["epoch"] > before.json()["epoch"]
    assert after.headers["etag"] != before.headers["etag"]
