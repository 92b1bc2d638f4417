"""The pages of a daemon but the figures: readiness, plans, Unix sockets.

    pages_test.py PROGRAMS LIBRARY
"""

from __future__ import annotations

import http.client
import json
import pathlib
import socket
import subprocess
import sys
from typing import Any, Tuple

import watched

# Figures that `batchwright plan` gets from a second plan, or that depend on who measures.
NOT_SHARED = {"seconds", "randomness", "shared_again", "shared_by_chance", "bucket_limits",
              "rank_imbalance_grouped", "rank_imbalance_ungrouped", "batch_size_histogram",
              "length_histogram"}
SETTINGS = ["--order", "semi-sorted", "--cut", "dynamic", "--size", "8", "--shuffle", "batches",
            "--world", "2"]


def get(daemon: watched.Watched, path: str) -> Tuple[int, str]:
    host = daemon.address[len("http://"):]
    connection = http.client.HTTPConnection(host, timeout=watched.SECONDS)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def plan_of(daemon: watched.Watched, query: str) -> Any:
    status, body = get(daemon, "/feeds/train/plan" + query)
    assert status == 200, (query, status, body)
    return json.loads(body)


def check_plan(daemon: watched.Watched, epoch: int) -> None:
    """The page has the figures that the command prints for the same data and settings."""
    page = plan_of(daemon, f"?epoch={epoch}")
    printed = subprocess.run(
        [daemon.programs / "batchwright", "plan", "--dataset", daemon.folder / "train", *SETTINGS,
         "--epoch", str(epoch), "--json"], check=True, stdout=subprocess.PIPE).stdout
    for key, value in json.loads(printed).items():
        if key not in NOT_SHARED:
            assert page[key] == value, (epoch, key, page[key], value)
    order = page["length_order"]
    assert [point[0] for point in order] == list(range(page["batches"]))
    assert sum(point[2] for point in order) == page["rows"]
    assert sum(point[1] * point[2] for point in order) == page["padded_frames"]


def check_refusals(daemon: watched.Watched) -> None:
    for epoch in ("", "-1", "x", "1.5", "18446744073709551616", "%31x"):
        status, body = get(daemon, "/feeds/train/plan?epoch=" + epoch)
        assert status == 400 and "allowed: 0 to 18446744073709551615" in body, (epoch, body)
    status, body = get(daemon, "/feeds/train/plan?epoc=1")
    assert (status, body) == (400, "unknown: epoc; allowed: epoch\n")
    status, body = get(daemon, "/feeds/tr%61in%20/plan")
    assert (status, body) == (404, 'no feed "train "; there is: train held-out\n')
    status, body = get(daemon, "/feeds")
    assert status == 404 and "/feeds/NAME/plan" in body, body


def check_unix_socket(daemon: watched.Watched) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(daemon.folder / "stats.sock"))
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert peer.makefile("rb").read().endswith(b"\r\n\r\nok\n")


def check_failed_feed(daemon: watched.Watched) -> None:
    """A feed whose data are broken makes the daemon not ready, and says why."""
    data = daemon.folder / "held-out" / "data.mdb"
    raw = bytearray(data.read_bytes())
    for row in daemon.first_rows:
        raw[raw.index(row)] ^= 0xFF
    daemon.stop()
    data.write_bytes(raw)
    daemon.start()
    watched.eventually(lambda: get(daemon, "/readyz")[0] == 503, "a feed that fails")
    status, body = get(daemon, "/readyz")
    assert body.startswith("not ready\nfeed held-out: failed: "), body
    assert "train" not in body, body
    assert get(daemon, "/healthz") == (200, "ok\n")


def main() -> None:
    with watched.Watched(pathlib.Path(sys.argv[1]), sys.argv[2], 300, 4) as daemon:
        assert get(daemon, "/readyz") == (200, "ready\n")
        for epoch in (0, 5, 0):
            check_plan(daemon, epoch)
        assert plan_of(daemon, "")["epoch"] == 0
        check_refusals(daemon)
        check_unix_socket(daemon)
        check_failed_feed(daemon)
    print("pages: as they should be")


main()
