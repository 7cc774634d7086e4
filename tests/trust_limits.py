"""How long a test waits for what may not end."""

import contextlib
import signal

PATIENCE = 60  # seconds until something counts as a hang


@contextlib.contextmanager
def no_hang(what="it"):
    """Fail where the block does not end."""

    def stop(*_):
        raise AssertionError(f"{what}: no end after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
