"""A mail server that delivers nothing: it keeps what it takes, and shows it on a page.

A program of its own, ``python -m fairdrop.notifications.sink``, for a machine on which everything
is tried out: mails go through real SMTP, and none of them leaves.
"""
