"""Times as people enter them: on the clock of an IANA zone, kept in UTC, shown on that clock again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_FORM = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)
_YEARS = range(1970, 9_999)


def zone_of(name: str) -> ZoneInfo:
    """The IANA zone of the name. Raises ValueError with a sentence when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is no zone of the IANA database; use one like 'Europe/Zurich' or 'UTC'"
        ) from None


def to_utc(text: str, zone: ZoneInfo) -> datetime:
    """The moment that ``text`` means: with an offset just that, without one on the zone's clock.

    An hour that a clock shows twice (in autumn) means the first of the two; an offset says which.
    Raises ValueError with a sentence for text that is no time, and for an hour that the zone's clock
    leaps over (in spring).
    """
    if _FORM.fullmatch(text) is None:
        raise ValueError(
            "a time is like '2026-03-01T08:30' (on the clock of the sale's zone), or with an offset:"
            " '2026-03-01T08:30:00+01:00'"
        )
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not in the calendar, or not on the clock") from None
    if moment.year not in _YEARS:
        raise ValueError("the year is from 1970 to 9998")
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    utc = moment.replace(tzinfo=zone).astimezone(UTC)
    if utc.astimezone(zone).replace(tzinfo=None) != moment:
        raise ValueError(
            f"there is no {text} in {zone.key}: the clock leaps over it that day; choose another time"
        )
    return utc


def on_the_clock(moment: datetime, zone: ZoneInfo) -> str:
    """The moment as the zone's clock shows it, like ``2026-03-01T08:30:00``."""
    return moment.astimezone(zone).replace(tzinfo=None).isoformat()


def same_reading(text: str, moment: datetime, zone: ZoneInfo) -> bool:
    """Whether ``text`` is just what the zone's clock shows at ``moment``.

    Saving what was shown changes nothing then, also in the hour that the clock shows twice.
    """
    if _FORM.fullmatch(text) is None:
        return False
    try:
        reading = datetime.fromisoformat(text)
    except ValueError:
        return False
    return reading.tzinfo is None and reading.isoformat() == on_the_clock(moment, zone)
