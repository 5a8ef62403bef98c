r"""A Django shop in one file whose checkout is behind a Fairdrop waiting room.

FAIRDROP_URL=http://127.0.0.1:8000 FAIRDROP_SALE=midnight-drop FAIRDROP_SHOP_KEY=... \
    python examples/django_shop.py runserver 8100
"""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from fairdrop.integrations.django import door

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY=os.environ.get("SECRET_KEY", "only-for-this-example"),
    MIDDLEWARE=["fairdrop.integrations.django.FairdropMiddleware"],
    FAIRDROP={
        "url": os.environ["FAIRDROP_URL"],
        "sale": os.environ["FAIRDROP_SALE"],
        "protect": ["/checkout"],
        "api_key": os.environ["FAIRDROP_SHOP_KEY"],
    },
)


def home(_request: Any) -> HttpResponse:
    """Anybody sees this."""
    return HttpResponse('<a href="/checkout">Buy</a>')


@csrf_exempt  # type: ignore[untyped-decorator]
def checkout(request: Any) -> HttpResponse:
    """Only those whose turn it is see this; an order placed lets the next one in."""
    if request.method == "POST":
        order = f"order-of-{request.fairdrop.jti}"
        answer = door().complete(request.fairdrop, reference=order)
        if answer == "recorded":
            return HttpResponse(order, status=201)
        return HttpResponse("This place was used already.", status=409)
    return HttpResponse(f'<form method="post"><button>Buy, {request.fairdrop.sub}</button></form>')


urlpatterns = [path("", home), path("checkout", checkout)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
