r"""A Flask shop whose checkout is behind a Fairdrop waiting room.

FAIRDROP_URL=http://127.0.0.1:8000 FAIRDROP_SALE=midnight-drop FAIRDROP_SHOP_KEY=... \
    flask --app examples/flask_shop.py run
"""

import os

from flask import Flask

from fairdrop.integrations.flask import Fairdrop, admission

app = Flask(__name__)
fairdrop = Fairdrop(
    app,
    url=os.environ["FAIRDROP_URL"],
    sale=os.environ["FAIRDROP_SALE"],
    protect=["/checkout"],
    api_key=os.environ["FAIRDROP_SHOP_KEY"],
)


@app.get("/")
def home() -> str:
    """Anybody sees this."""
    return '<a href="/checkout">Buy</a>'


@app.get("/checkout")
def checkout() -> str:
    """Only those whose turn it is see this."""
    inside = admission()
    return f'<form method="post"><button>Buy, {inside.sub if inside else ""}</button></form>'


@app.post("/checkout")
def buy() -> tuple[str, int]:
    """The order is placed: tell Fairdrop, which lets the next one in."""
    inside = admission()
    assert inside is not None, "the path is protected"
    order = f"order-of-{inside.jti}"
    answer = fairdrop.door.complete(inside, reference=order)
    return (order, 201) if answer == "recorded" else ("This place was used already.", 409)
