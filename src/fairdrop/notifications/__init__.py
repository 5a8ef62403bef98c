"""Notifications: what buyers are told outside the pages; so far by mail (SPEC O12, O13)."""

from .mailer import Mailer
from .message import Bought, MailFacts, confirmation
from .post import Post, PostUnavailable, parse_address

__all__ = [
    "Bought",
    "MailFacts",
    "Mailer",
    "Post",
    "PostUnavailable",
    "confirmation",
    "parse_address",
]
