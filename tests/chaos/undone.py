"""Trials of a queue whose workers give batches back undone, by their word or by an interrupt."""
import os
import signal

from checks import Undone, check_returned, is_undone, read_ledger, read_returned, texts_of
from events import KINDS, draw_events, interrupt_all, interrupt_worker
from setting import EPOCHS, draw_setting
from trial import Trial

PATIENCE = 600  # seconds; the trial gives up before
AGAIN = 7  # exit code of queue_loop.py: it ended with a batch in hand, and is to come again


def signal_worker(trial, worker, _):
    trial.interrupt(worker, signal.SIGUSR1)


def make_returning(draw, words):
    """Of a chaos_worker: it gives batches back, has short limits, and hears signals."""
    words += [f"returns={draw.choice((5, 20, 40))}", f"limit={draw.choice((0, 1, 5, 20))}",
              f"signals_us={draw.choice((0, 0, 300, 2000, 9000))}"]
    return words


def hears_signals(words):
    return any(word.startswith("signals_us=") and word != "signals_us=0"
               for word in map(str, words))


class Returns(Trial):
    """Workers over the C ABI."""

    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, "queue")
        for words in setting.worker:
            make_returning(draw, words)
        # A signal without a handler ends a process, which is what the other kinds are for.
        signals = (interrupt_worker, interrupt_all, signal_worker)
        return setting, draw_events(draw, setting.workers, setting.grace_ms, KINDS + signals)

    def interrupt(self, child, number=signal.SIGINT):
        if hears_signals(child.words) and has_begun(child):
            super().interrupt(child, number)

    def check(self):
        super().check()
        returned = [read_returned(path) for path in self.records]
        events, _ = read_ledger(self.folder / "ledger")
        check_returned(returned, events, self.setting.epochs, self.deaths)
        self.figures["batches given back"] += sum(map(len, returned))


def has_begun(child):
    """Whether the process handles signals: it has written a line."""
    pid = str(child.process.pid)
    record = next(word for word in map(str, child.words) if word.startswith("record="))
    texts = texts_of(child.folder / os.path.basename(record.partition("=")[2]))
    return any(pid in text.split()[:2] for text in texts[-50:])


class Interrupts(Trial):
    """Workers in Python, whose loops end by exceptions, `break` and SIGINT, beside some that do
    not."""

    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, "queue")
        for words in setting.worker[1:]:
            if draw.random() < 0.4:
                make_returning(draw, words)
        setting.more = {"loops": [
            {"seed": draw.randrange(10000), "window": draw.randint(2, 4),
             "inline": draw.random() < 0.2, "fails": draw.choice((0.05, 0.2)),
             "interrupts": draw.choice((0, 0.3, 0.8))}
            if not any(word.startswith("returns=") for word in words) else None
            for words in setting.worker]}
        # A loop holds a batch while it waits for the next: all go on if one slot more is there.
        setting.feed["slots"] = max(setting.feed["slots"], setting.workers + 1)
        kinds = KINDS + 4 * (interrupt_worker, interrupt_all)
        return setting, draw_events(draw, setting.workers, setting.grace_ms, kinds)

    def make_workers(self):
        self.loops = []
        workers = []
        for number, (job, words) in enumerate(zip(self.setting.more["loops"],
                                                  self.setting.worker)):
            if job is None:
                workers.append(self.worker(number, words))
                continue
            workers.append(self.script(f"worker{number}", "queue_loop.py", {
                **job, "endpoint": f"ipc://{self.folder / 's'}", "epochs": EPOCHS,
                "patience": PATIENCE, "record": str(self.folder / f"record{number}"),
                "ledger": str(self.folder / "ledger")}))
            self.loops.append(workers[-1])
        return workers

    def interrupt(self, child, number=signal.SIGINT):
        ready = f"ready {child.process.pid}"
        if child in self.loops and ready in child.log.read_text(errors="replace"):
            super().interrupt(child, number)

    def ended(self, child, code):
        """By an interrupt that nothing caught, or by itself with a batch in hand: it comes again."""
        if child not in self.loops or code not in (AGAIN, -signal.SIGINT):
            super().ended(child, code)
        self.mark("ended", child)
        self.figures["programs that ended with a batch"] += 1
        child.start()

    def check(self):
        super().check()
        texts = [text for path in self.records for text in texts_of(path) if is_undone(text)]
        self.figures["batches given back"] += len([Undone(text) for text in texts])
