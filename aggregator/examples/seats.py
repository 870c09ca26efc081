#!/usr/bin/env python3
"""Seats that are reserved once and can be handed back.

`max` makes reserving one call: the add is applied only if a seat is left. The
idempotency key makes a retry harmless: who asks again after an answer was lost gets
the seat they have, and not a second one. `min` keeps a seat from being handed back
that nobody had.

    python3 seats.py [URL]        the URL of `weir serve`, http://127.0.0.1:8080
"""

import json
import sys
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
SEATS = 2


def add(event, delta, booking):
    body = {
        "namespace": "seats",
        "counter_id": event,
        "delta": delta,
        "min": 0,
        "max": SEATS,
        "idempotency_key": booking,
    }
    request = urllib.request.Request(
        URL + "/v1/counter/increment", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def reserve(event, booking):
    """Whether there was a seat for this booking."""
    return add(event, 1, f"reserve {booking}")["applied"]


def hand_back(event, booking):
    """Gives the booking's seat to whoever comes next."""
    return add(event, -1, f"hand back {booking}")["applied"]


def main():
    for who in ("ann", "ann", "bob", "cem"):
        print(who, "has a seat" if reserve("gig", who) else "has none")
    hand_back("gig", "bob")
    print("dee", "has a seat" if reserve("gig", "dee") else "has none")


if __name__ == "__main__":
    main()
