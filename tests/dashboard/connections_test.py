"""Ten thousand HTTP connections at once against a daemon that serves.

    connections_test.py PROGRAMS LIBRARY [--connections 10000] [--seconds 3]

Silent ones, slow senders, endless headers and bytes that are no HTTP; a peer that is hung up on
comes again. Meanwhile a client takes batches, and someone asks /healthz over TCP, in the middle of
the crowd, and over the Unix socket, where no one else is and the loop alone decides when the answer
comes. All must go on, within the limits of the endpoint. Prints what the client took and how long
the answers took, without the crowd and with it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import resource
import select
import socket
import statistics
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import watched

SENDS = [b"", b"GET /stats HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n" + 1000 * b"Y: yyyyyyyyyyyyy\r\n",
         b"\x16\x03\x01\x02\r\n\r\n"]
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
MOST_OPEN = 64 + 16  # EndpointLimits: connections, and readers of /live beside them
LEAST = {"tcp": 3, "unix": 200, "batches": 500}  # that must come while the crowd is there


class Crowd:
    """Connections that are made again when they end."""

    def __init__(self, address: Tuple[str, int], count: int) -> None:
        self.address, self.made = address, 0
        self.poll = select.epoll()
        self.open: Dict[int, socket.socket] = {}
        for _ in range(count):
            self.add()

    def add(self) -> None:
        peer = socket.socket()
        peer.setblocking(False)
        # Many addresses, for the ports of one are soon used up.
        peer.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        peer.bind((f"127.0.0.{2 + self.made % 200}", 0))
        peer.connect_ex(self.address)
        self.open[peer.fileno()] = peer
        self.poll.register(peer, select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR)
        self.made += 1
        with contextlib.suppress(OSError):  # not connected yet: it stays silent
            peer.send(SENDS[self.made % len(SENDS)])

    def turn(self) -> None:
        """Replaces those that have been hung up on."""
        for number, _ in self.poll.poll(0.1):
            try:
                ended = self.open[number].recv(1 << 16) == b""
            except OSError:
                ended = True
            if ended:
                self.poll.unregister(number)
                self.open.pop(number).close()
                self.add()


def crowd(address: Tuple[str, int], count: int, ready: Any, stop: Any) -> None:
    """A process of its own, until it is told to stop. It takes what processor time others leave:
    crowds come from other machines, and it is the daemon that is looked at."""
    peers = Crowd(address, count)
    os.nice(19)
    ready.release()
    while not stop.is_set():
        peers.turn()


@contextlib.contextmanager
def crowded(daemon: watched.Watched, count: int) -> Iterator[None]:
    """So many connections, by as many processes as their limit of descriptors asks for."""
    host, port = daemon.address[len("http://"):].split(":")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    each = min(count, most - 100)
    shares = [min(each, count - begin) for begin in range(0, count, each)]
    ready, stop = multiprocessing.Semaphore(0), multiprocessing.Event()
    members = [multiprocessing.Process(target=crowd,
                                       args=((host, int(port)), share, ready, stop))
               for share in shares]
    for member in members:
        member.start()
    try:
        for _ in members:
            assert ready.acquire(timeout=watched.SECONDS), "the connections could not be made"
        yield
    finally:
        stop.set()
        for member in members:
            member.join()


def connect_tcp(daemon: watched.Watched) -> socket.socket:
    host, port = daemon.address[len("http://"):].split(":")
    return socket.create_connection((host, int(port)), watched.SECONDS)


def connect_unix(daemon: watched.Watched) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(watched.SECONDS)
    peer.connect(str(daemon.folder / "stats.sock"))
    return peer


def over_unix(daemon: watched.Watched, request: bytes) -> bytes:
    with connect_unix(daemon) as peer:
        peer.sendall(request)
        return peer.makefile("rb").read()


def stats(daemon: watched.Watched) -> Dict[str, Any]:
    return json.loads(over_unix(daemon, REQUEST.replace(b"healthz", b"stats"))
                      .partition(b"\r\n\r\n")[2])


def delivered(daemon: watched.Watched) -> int:
    return sum(client["delivered_batches"] for feed in stats(daemon)["feeds"]
               for client in feed["subscribers"])


class Asker(threading.Thread):
    """Asks /healthz again and again, and keeps how long each answer took."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        super().__init__()
        self.connect, self.ended = connect, threading.Event()
        self.waits: List[float] = []
        self.failed: List[str] = []
        self.start()

    def run(self) -> None:
        while not self.ended.wait(0.01):
            asked = time.monotonic()
            try:
                with self.connect() as peer:
                    peer.sendall(REQUEST)
                    answer = peer.makefile("rb").read()
            except OSError as reason:
                self.failed.append(str(reason))
                continue
            self.waits.append(time.monotonic() - asked)
            if not answer.endswith(b"\r\n\r\nok\n"):
                self.failed.append(repr(answer))


def loop_seconds(daemon: watched.Watched) -> float:
    """Processor time of the event loop's thread, the first of the process."""
    process = daemon.process.pid
    schedstat = pathlib.Path(f"/proc/{process}/task/{process}/schedstat")
    return int(schedstat.read_text().split()[0]) / 1e9


def observe(daemon: watched.Watched, seconds: float) -> Dict[str, Any]:
    """For so long at least, and until enough has come of each kind."""
    askers = {"tcp": Asker(lambda: connect_tcp(daemon)),
              "unix": Asker(lambda: connect_unix(daemon))}
    begin, first, busy = time.monotonic(), delivered(daemon), loop_seconds(daemon)

    def enough() -> bool:
        return (time.monotonic() >= begin + seconds
                and delivered(daemon) >= first + LEAST["batches"]
                and all(len(asker.waits) >= LEAST[name] for name, asker in askers.items()))

    try:
        watched.eventually(enough, f"{LEAST} while connections come and go")
        took = time.monotonic() - begin
        figures: Dict[str, Any] = {
            "batches_per_second": (delivered(daemon) - first) / took,
            "loop_share": (loop_seconds(daemon) - busy) / took, "http": stats(daemon)["http"]}
    finally:
        for asker in askers.values():
            asker.ended.set()
        for asker in askers.values():
            asker.join()
    for name, asker in askers.items():
        assert not asker.failed, (name, asker.failed[:3])
        figures[name] = {"answers": len(asker.waits), "worst_seconds": max(asker.waits),
                         "median_seconds": statistics.median(asker.waits)}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("library")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    with watched.Watched(options.programs, options.library, 300, 80) as daemon:
        daemon.client("train", "client", "--pause", "0.002")
        alone = observe(daemon, options.seconds)
        with crowded(daemon, options.connections):
            together = observe(daemon, options.seconds)
            open_now = together["http"]["connections"]
            assert open_now <= MOST_OPEN, f"{open_now} connections are open"
        watched.eventually(lambda: stats(daemon)["http"]["connections"] <= 2,
                           "the crowd's connections to end")
        print(json.dumps({"connections": options.connections, "alone": alone, "together": together,
                          "left": together["batches_per_second"] / alone["batches_per_second"]},
                         indent=1))


main()
