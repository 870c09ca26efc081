#!/usr/bin/env python3
"""A live tally: one watches, others vote.

The watch is a stream of server-sent events. The first tells the counter as it is;
changes that come faster than they are read are told as the latest of them. So the
sum is always right, and a slow reader holds up nobody.

    python3 tally.py [URL]        the URL of `weir serve`, http://127.0.0.1:8080
"""

import json
import sys
import threading
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
VOTES = 20


def vote(option):
    body = json.dumps({"namespace": "poll", "counter_id": option}).encode()
    urllib.request.urlopen(
        urllib.request.Request(URL + "/v1/counter/increment", body)
    ).close()


def sums(option):
    """What the counter is, again and again; None until somebody votes."""
    watch = f"{URL}/v1/counter/{option}/watch?namespace=poll"
    with urllib.request.urlopen(watch) as events:
        for line in events:
            if line.startswith(b"data:"):
                yield json.loads(line[len(b"data:") :])["value"]


def main():
    seen = sums("tea")
    print("so far", next(seen) or 0)
    voters = [threading.Thread(target=vote, args=("tea",)) for _ in range(VOTES)]
    for voter in voters:
        voter.start()
    last = next(value for value in seen if value == VOTES)
    print("at last", last)


if __name__ == "__main__":
    main()
