"""Operations on who may join a sale: rules, invitations (W19). All of them are audited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from fairdrop.access import Entry, Kind, Tier
from fairdrop.web.wire import Problem, rfc3339

from .bodies import Time
from .local_time import to_utc, zone_of
from .problems import BAD_BODY, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

ACTOR = "api"
SaleName = Annotated[str, Path(max_length=64, description="The sale's id or slug.")]
Values = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=254)]],
    Field(min_length=1, max_length=5_000, description="Codes, addresses or the shop's buyer ids."),
]
KindName = Annotated[
    Literal["code", "email", "buyer"], Field(description="What they are known by.")
]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class AccessBody(_Body):
    """Who may join. Both values are set; what is left out has its default."""

    entry: Annotated[
        Literal["open", "invited"], Field(description="Everybody, or the invited only.")
    ] = "open"
    priority_opens_at: Annotated[
        Time | None,
        Field(description="From then on people with priority may join; null: from the lobby on."),
    ] = None


class InvitesBody(_Body):
    """Invitations to add. Only keyed hashes of the values are kept."""

    kind: KindName
    values: Values
    tier: Annotated[
        Literal["invited", "priority", "bypass"],
        Field(
            description="invited: may join; priority: may join early, ahead of everybody else;"
            " bypass: ahead of those with priority."
        ),
    ] = "invited"
    uses: Annotated[
        int, Field(ge=1, le=1_000_000, description="Visitors who may use each of them.")
    ] = 1


class RevokeBody(_Body):
    """Invitations to take back."""

    kind: KindName
    values: Values


class InviteCount(BaseModel):
    """Invitations of one kind and tier."""

    kind: str
    tier: str
    invites: int
    uses: int = Field(description="How often they may be used altogether.")
    used: int
    revoked: int


class AccessDocument(BaseModel):
    """Who may join a sale."""

    sale: str
    entry: str
    priority_opens_at: str | None
    invites: list[InviteCount]


class InvitesChanged(BaseModel):
    """How many invitations were added or taken back; the others were so already."""

    sale: str
    changed: int


def router(parts: Parts) -> APIRouter:
    """The routes of access."""
    routes = APIRouter(tags=["access"])
    desk = _Desk(parts)

    @routes.get("/sales/{sale}/access", responses=NOT_FOUND)
    async def show_access(sale: SaleName) -> AccessDocument:
        """Who may join a sale, and how many invitations there are."""
        return await desk.document(await desk.sale(sale))

    @routes.put("/sales/{sale}/access", responses=BAD_BODY | NOT_FOUND)
    async def set_access(sale: SaleName, body: AccessBody) -> AccessDocument:
        """Say who may join, and from when on people with priority may. Places given stay."""
        return await desk.set_rules(await desk.sale(sale), body)

    @routes.post("/sales/{sale}/invites", responses=BAD_BODY | NOT_FOUND)
    async def add_invites(sale: SaleName, body: InvitesBody) -> InvitesChanged:
        """Add invitations, up to 5,000 in one request. Those that are there already stay as they are."""
        return await desk.add(await desk.sale(sale), body)

    @routes.post("/sales/{sale}/invites/revoke", responses=BAD_BODY | NOT_FOUND)
    async def revoke_invites(sale: SaleName, body: RevokeBody) -> InvitesChanged:
        """Take invitations back: nobody uses them any more. Places given stay."""
        return await desk.revoke(await desk.sale(sale), body)

    return routes


class _Desk:
    """The use cases behind the routes."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._invites = parts.invites

    async def sale(self, name: str) -> Sale:
        """The sale. Raises Problem 404."""
        sale = await self._parts.catalog.sale(name)
        if sale is None:
            raise Problem(404, "no_such_sale", "There is no sale of this id or slug.")
        return sale

    async def document(self, sale: Sale) -> AccessDocument:
        """The rules of the sale, with counts."""
        rules = await self._invites.rules(sale.id)
        at = rules.priority_opens_at
        return AccessDocument(
            sale=sale.id,
            entry=rules.entry,
            priority_opens_at=rfc3339(at) if at else None,
            invites=[
                InviteCount(
                    kind=each.kind,
                    tier=each.tier,
                    invites=each.invites,
                    uses=each.uses_max,
                    used=each.used,
                    revoked=each.revoked,
                )
                for each in await self._invites.counts(sale.id)
            ],
        )

    async def set_rules(self, sale: Sale, body: AccessBody) -> AccessDocument:
        """Raises Problem 422 for a time that is none."""
        at = None
        if body.priority_opens_at is not None:
            try:
                at = to_utc(body.priority_opens_at, zone_of(sale.timezone))
            except ValueError as error:
                raise _invalid("priority_opens_at", f"{error}.") from None
        await self._invites.set_rules(sale.id, Entry(body.entry), at, ACTOR)
        return await self.document(sale)

    async def add(self, sale: Sale, body: InvitesBody) -> InvitesChanged:
        """Raises Problem 422 for a code that is too short."""
        kind, tier = Kind(body.kind), Tier(body.tier)
        values = self._values(kind, body.values)
        try:
            added = await self._invites.add(
                sale.id, kind, values, tier=tier, uses=body.uses, actor=ACTOR
            )
        except ValueError as error:
            raise _invalid("values", f"{error}.".capitalize()) from None
        return InvitesChanged(sale=sale.id, changed=added)

    async def revoke(self, sale: Sale, body: RevokeBody) -> InvitesChanged:
        """Raises Problem 422 for a code that is too short."""
        kind = Kind(body.kind)
        try:
            gone = await self._invites.revoke(sale.id, kind, self._values(kind, body.values), ACTOR)
        except ValueError as error:
            raise _invalid("values", f"{error}.".capitalize()) from None
        return InvitesChanged(sale=sale.id, changed=gone)

    def _values(self, kind: Kind, values: Sequence[str]) -> Sequence[str]:
        """Buyers as the line knows them: by the visitor id that their name in the shop gives."""
        if kind is not Kind.BUYER:
            return values
        return [self._parts.visitors.of_buyer(value) for value in values]


def _invalid(field: str, detail: str) -> Problem:
    found = [{"field": f"body.{field}", "detail": detail}]
    return Problem(422, "invalid_request", f"body.{field}: {detail}", errors=found)
