"""The headers that every page and every asset carries, and what they keep out.

The policy allows nothing that is not ours: no inline script or style, no other address, no frame
around us, no string turned into markup. Its ``form-action`` stays on this site; the way to the
payment page is a plain navigation, which a policy does not govern. Where a CAPTCHA is configured, the
pages on which people join let its widget in: script, frame, style and calls of the provider, whose
code may turn strings into markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Header = tuple[bytes, bytes]

_POLICY: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}


_TYPES: Final = ("require-trusted-types-for", "trusted-types")


def _policy(
    forms_to: Iterable[str] = (), connects_to: Iterable[str] = (), widgets: Sequence[str] = ()
) -> str:
    policy = {
        **_POLICY,
        "form-action": " ".join(["'self'", *forms_to]),
        "connect-src": " ".join(["'self'", *connects_to, *widgets]),
    }
    if widgets:
        policy |= {
            "script-src": " ".join(["'self'", *widgets]),
            "style-src": " ".join(["'self'", *widgets]),
            "frame-src": " ".join(widgets),
        }
        for name in _TYPES:
            del policy[name]
    return "; ".join(f"{name} {value}" for name, value in policy.items())


CONTENT_SECURITY_POLICY: Final = _policy()

PAGE_CACHE: Final = "public, max-age=300"
"""A page may be up to five minutes old: it holds no figure, only the places for them (S9)."""
ASSET_CACHE: Final = "public, max-age=31536000, immutable"
"""An asset's address names its content, so it never changes."""
STRAY_CACHE: Final = "no-store"
"""For an asset asked for by another release's address: answered, but kept by no cache."""

_EVERYWHERE: Final[tuple[Header, ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
SHARED_WITH_ALL: Final[tuple[Header, ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"access-control-allow-origin", b"*"),
)
_ON_PAGES: Final[tuple[Header, ...]] = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
    # An order's address is nobody else's business, the payment page's included.
    (b"referrer-policy", b"same-origin"),
)


def page_headers(
    forms_to: Iterable[str] = (), connects_to: Iterable[str] = (), widgets: Sequence[str] = ()
) -> tuple[Header, ...]:
    """What a page is sent with, besides its type, length and tag.

    Its forms may go to the origins of ``forms_to``, its scripts may speak to those of ``connects_to``;
    a CAPTCHA may load from ``widgets``.
    """
    policy = (b"content-security-policy", _policy(forms_to, connects_to, widgets).encode())
    return (*_EVERYWHERE, policy, *_ON_PAGES, (b"cache-control", PAGE_CACHE.encode()))


def asset_headers(*, stray: bool, shared: bool = False) -> tuple[Header, ...]:
    """What an asset is sent with.

    ``stray`` when the address was not this release's, ``shared`` when pages of any origin may load it.
    """
    cache = STRAY_CACHE if stray else ASSET_CACHE
    return (*(SHARED_WITH_ALL if shared else _EVERYWHERE), (b"cache-control", cache.encode()))
