"""The checks of trials of kind returns, journals and peers, and what does the harm in them.

Call: trouble_test.py
"""
import random
import socket
import struct
import threading
import time

from checks import Undone, check_returned
from checks_test import (ALL, FINISHED, LINES, broken, complaint, delivered, done, expect, line,
                         mark, returned)
from journals import (DONE, EPOCH, GIVEN, HARMS, PAGE, RECORD, REFUSED, RETURNED, Journal,
                      check_refused, crc32c, cut, flip_before, flip_last, forgotten, zeros_at_end,
                      zeros_before_page)
from peers import Bystander
from proxy import Proxy


def check_undone():
    """Batch (0, 0) is given back by process 1, and done by process 2 or by the same one."""
    rest = FINISHED[2:]

    def again(events, lines=(line(0, 0, pid=2, attempt=2),), deaths=0):
        return complaint("queue", [[*lines, *LINES[1:]]], [*events, *rest], deaths=deaths)

    first = [delivered(8, 0, 0), returned(8)]
    second = [delivered(9, 0, 0, pid=2), done(9, pid=2)]
    expect("given back", again(first + second), "")
    expect("done by who gave it back", again([*first, done(8)], [line(0, 0)]),
           "done after it was given back")
    expect("lost by giving it back", again(first, []), "nobody trained on (0, 0)")
    expect("returned twice", again([*first, returned(8), *second]), "returned twice")
    expect("another's return", again([first[0], returned(8, 2), *second]), "returned by another")
    expect("returned of nothing", again([returned(7), *first, *second]), "returned, but never")
    late = [*second, returned(9, 2)]
    expect("returned after done", again([*first, *late]), "returned after it was done")
    expect("the attempt does not grow", again(first + second, [line(0, 0, pid=2, attempt=1)]),
           "is attempt 1, which may be [(2, 2)]")
    expect("it grows too much", again(first + second, [line(0, 0, pid=2, attempt=3)]), "attempt 3")
    expect("by a lost line", again(first + second, [line(0, 0, pid=2, attempt=3)], 1), "")
    expect("an attempt that was not", complaint("queue", [[line(0, 0, attempt=2), *LINES[1:]]],
                                                FINISHED), "attempt 2")

    def said(lines, events, deaths=0):
        return broken(check_returned, [[Undone(f"returned {words}") for words in lines]], events, 2,
                      deaths)

    expect("he said so", said(["1 0 0 1"], first), "")
    expect("he did not", said([], first), "gave back (0, 0) 0 times")
    expect("another said so", said(["2 0 0 1"], first), "gave back (0, 0) 0 times")
    expect("nobody heard", said(["1 0 0 1"], first[:1]), "and the daemon took it back 0 times")
    expect("he was killed", said(["1 0 0 1"], [*first[:1], mark("killed")]), "")
    expect("the daemon died", said(["1 0 0 1"], first[:1], deaths=1), "")


def check_forgotten():
    """The journal's record of (0, 0) is destroyed while the daemon is down."""
    def after(batches, undone=(), lines=LINES):
        lost = [mark("forgotten", epoch=0, batches=batches, undone=dict(undone)), mark("daemon")]
        again = [delivered(9, 0, 0), done(9)]
        return complaint("queue", [[LINES[0], *lines]], [*FINISHED[:2], *lost, *again,
                                                         *FINISHED[2:]], deaths=1)

    expect("what was destroyed is done again", after([0]), "")
    expect("what was not", after([]), "delivered after it was done")
    expect("another was", after([1]), "delivered after it was done")
    lost = mark("forgotten", epoch=0, batches=[0], undone={})
    expect("never again", complaint("queue", [LINES], [*FINISHED[:2], lost, *FINISHED[2:]]),
           "1 batches are not done")
    times = [delivered(7, 0, 0, pid=2), returned(7, 2),
             mark("forgotten", epoch=0, batches=[], undone={}), *FINISHED]
    lines = [line(0, 0, attempt=1), *LINES[1:]]
    expect("how often it came back", complaint("queue", [lines], times), "")
    times[2]["undone"]["0"] = 1
    expect("which is known", complaint("queue", [lines], times), "is attempt 1")

    refused = [*ALL[:2], mark("refused"), mark("killed"), mark("mended"), *ALL[2:]]
    expect("nothing is served", broken(check_refused, refused), "")
    expect("it is", broken(check_refused, [*refused[:3], ALL[2], *refused[3:]]), "served with a")


def record(kind, *values):
    body = struct.pack("<IQQQ", kind, *values)
    return struct.pack("<I", crc32c(body)) + body


def check_journals():
    """What harms do to a journal, and what a queue then knows."""
    expect("the checksum", str(crc32c(b"123456789") == 0xE3069283), "True")
    head = record(0x31515742, 1, 2, 3) + record(EPOCH, 1, 4, 0)
    some = head + record(GIVEN, 1, 0, 9) + record(GIVEN, 2, 1, 9) + record(RETURNED, 2, 1, 9)
    whole = some + record(DONE, 1, 0, 9) + record(DONE, 2, 1, 9)
    told = Journal(whole)
    expect("what it says", str((told.epoch, told.done, told.undone)), "(4, {0}, Counter({1: 1}))")
    expect("a lost record", str(forgotten(told, Journal(some))),
           "{'epoch': 4, 'batches': [0], 'undone': {'1': 1}}")
    long = head + b"".join(record(GIVEN, n, n, 9) + record(DONE, n, n, 9) for n in range(200))
    for seed in range(200):
        for harm in HARMS:
            bad = harm(long, random.Random(seed))
            name = f"{harm.__name__} by seed {seed}"
            expect(f"{name}: it is harmed", str(bad != long), "True")
            whole = bad[:2 * RECORD] == long[:2 * RECORD]
            expect(f"{name}: the head", str(whole or harm in REFUSED), "True")
            expect(f"{name}: what is known", str(Journal(bad).done <= Journal(long).done), "True")
    draw = random.Random(1)
    expect("whole pages", str(len(zeros_at_end(long, draw)) % PAGE), "0")
    expect("the same size", str(len(zeros_before_page(long, draw)) == len(long)), "True")
    expect("it ends there", str(zeros_before_page(long, draw).endswith(long[-RECORD:])), "True")
    expect("shorter", str(len(cut(long, draw)) < len(long)), "True")
    expect("the last", str(flip_last(long, draw)[:-RECORD] == long[:-RECORD]), "True")
    expect("not the last", str(flip_before(long, draw)[-RECORD:] == long[-RECORD:]), "True")


def check_peers():
    """A worker that has no proxy must go on, whatever the others' is."""
    def goes_on(*looks):
        bystander = Bystander("worker1", 0, 5)
        return broken(lambda: [bystander.look(*look) for look in looks])

    expect("it goes on", goes_on((1, 4, False), (2, 8, False)), "")
    expect("it stands still", goes_on((1, 4, False), (1, 10, False)), "worker1 has no proxy, and")
    expect("it is stopped", goes_on((1, 4, False), (1, 8, True), (1, 12, False)), "")


class Echo(threading.Thread):
    """Says what it hears."""

    def __init__(self):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            try:
                way = self.listener.accept()[0]
            except OSError:
                return
            while heard := way.recv(65536):
                way.sendall(heard)
            way.close()


def check_proxy():
    echo = Echo()
    echo.start()
    proxy = Proxy(echo.port)
    try:
        client = socket.create_connection(("127.0.0.1", proxy.port))
        client.settimeout(0.2)

        def answer(word, seconds=10.0):
            client.settimeout(seconds)
            if word:
                client.sendall(word)
            try:
                return client.recv(65536).decode() or "cut off"
            except TimeoutError:
                return "nothing"
            except OSError:
                return "cut off"

        expect("it forwards", answer(b"one"), "one")
        for ways in (("up",), ("down",), ("up", "down")):
            proxy.freeze(ways)
            expect(f"frozen {ways}", answer(b"two", 0.2), "nothing")
            proxy.freeze(())
            expect(f"no longer frozen {ways}", answer(b""), "two")
        proxy.slow_down(10_000)
        began = time.monotonic()
        client.sendall(bytes(4000))
        got = 0
        while got < 4000:
            got += len(client.recv(65536))
        expect("it is slow", str(time.monotonic() - began > 0.2), "True")
        proxy.cut()
        expect("it cuts", answer(b""), "cut off")
        client.close()
    finally:
        proxy.close()
        echo.listener.shutdown(socket.SHUT_RDWR)
        echo.listener.close()
        echo.join()


if __name__ == "__main__":
    check_undone()
    check_forgotten()
    check_journals()
    check_peers()
    check_proxy()
