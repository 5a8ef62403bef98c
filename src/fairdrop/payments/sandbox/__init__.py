"""The sandbox gateway: a real HTTP server with books of its own, and no real money.

::

    export FAIRDROP_GATEWAY_SECRET_KEY=… FAIRDROP_GATEWAY_WEBHOOK_SECRET=…
    python -m fairdrop.payments.sandbox --port 8300 --data-dir gateway \
        --webhook-url http://127.0.0.1:8000/v1/webhooks/sandbox

:mod:`.routes` lists its addresses, :mod:`.cards` the test cards, :mod:`.mischief` what it can do to
a payment and its webhook, :mod:`.record` why an answer of it can be relied on.
"""
