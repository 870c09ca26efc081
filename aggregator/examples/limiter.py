#!/usr/bin/env python3
"""A fixed-window limiter of a few lines, on one conditional add.

A window is a counter of its own, named after its number. An add that would take it
over the limit is not applied, so counting and deciding are one call, and no two
callers can both have the last place. An hour after its last use a window forgets
itself.

    python3 limiter.py [URL]        the URL of `weir serve`, http://127.0.0.1:8080
"""

import json
import sys
import time
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"


def call(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def allowed(user, limit, window_s, now):
    """Whether this user may once more, and how often after that."""
    window = int(now // window_s)
    added = call(
        "/v1/counter/increment",
        {
            "namespace": "limiter",
            "counter_id": f"{user}:{window}",
            "max": limit,
            "ttl_s": 3600,
        },
    )
    return added["applied"], limit - added["value"]


def main():
    now = time.time()
    for second in (now, now, now, now, now + 60):
        yes, left = allowed("alice", limit=3, window_s=60, now=second)
        print("allowed" if yes else "denied", left)


if __name__ == "__main__":
    main()
