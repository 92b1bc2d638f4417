"""What may befall a trial, drawn at random."""
import signal


class Event:
    """Happens when the records have so much in them, or so long after the event before it."""

    def __init__(self, draw, kinds, workers, grace_ms):
        self.kind = draw.choice(kinds)
        self.progress = draw.uniform(0, 0.95)
        self.behind = draw.uniform(0, 0.2) if draw.random() < 0.4 else None
        self.victim = draw.randrange(workers)
        # Longer than a queue keeps what a lost client had.
        self.seconds = grace_ms / 1000 * draw.uniform(1.2, 2.2)
        self.previous = None

    def note_previous(self, now):
        if self.previous is None:
            self.previous = now

    def is_due(self, progress, now):
        if self.behind is not None and self.previous is not None:
            return now >= self.previous + self.behind
        return progress >= self.progress

    def happen(self, trial):
        trial.victim = self.victim
        self.kind(trial, trial.workers[self.victim % len(trial.workers)], self.seconds)


def kill_worker(trial, worker, _):
    trial.kill(worker)


def kill_daemon(trial, _, __):
    trial.kill(trial.daemon)


def end_daemon(trial, _, __):
    trial.kill(trial.daemon, signal.SIGTERM)


def kill_both(trial, worker, _):
    trial.kill(worker)
    trial.kill(trial.daemon)


def kill_all_workers(trial, _, __):
    for worker in trial.workers:
        trial.kill(worker)


def stop_worker(trial, worker, seconds):
    trial.stop(worker, seconds)


def stop_daemon(trial, _, seconds):
    trial.stop(trial.daemon, seconds)


def stop_worker_and_kill_daemon(trial, worker, seconds):
    """The queue gives away what the worker holds before it can ask for it."""
    trial.stop(worker, seconds + 0.2)
    trial.kill(trial.daemon)


def stop_daemon_and_kill_worker(trial, worker, seconds):
    trial.stop(trial.daemon, seconds)
    trial.kill(worker)


def kill_other(trial, _, __):
    for other in trial.others:
        trial.kill(other)


def stop_other(trial, _, seconds):
    for other in trial.others:
        trial.stop(other, seconds)


def interrupt_worker(trial, worker, _):
    trial.interrupt(worker)


def interrupt_all(trial, _, __):
    for worker in trial.workers:
        trial.interrupt(worker)


KINDS = (kill_worker, kill_worker, kill_daemon, kill_daemon, end_daemon, kill_both,
         kill_all_workers, stop_worker, stop_daemon, stop_worker_and_kill_daemon,
         stop_daemon_and_kill_worker)


def draw_events(draw, workers, grace_ms, kinds=KINDS):
    """In the order of their progress. `workers`: of which one is drawn for each."""
    events = [Event(draw, kinds, workers, grace_ms) for _ in range(draw.randint(2, 6))]
    return sorted(events, key=lambda event: event.progress)
