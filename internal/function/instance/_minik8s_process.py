"""Work in a process of its own, of which nothing is left when it has ended: neither the processes that it started, in whatever
session they are, nor anything that it could do to the connections of this one.
"""

import os
import select
import signal
import threading

try:
    import ctypes

    libc = ctypes.CDLL(None)
except (ImportError, OSError):  # in an image without it orphans are found when their call has ended
    libc = None

SET_CHILD_SUBREAPER = 36  # of prctl

forking = threading.Lock()
ours = set()  # the processes of calls, and those that were there before any


def adopt():
    """Makes this process the parent of what its children leave behind."""
    if libc is not None:
        libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prepare():
    """Is called once, before the first call."""
    adopt()
    ours.update(children_of(os.getpid()))


def run(work, limits, timeout, late):
    """Returns what work returns in a process of its own, which is bytes, and whether its time was over; None if it did not return.

    After timeout seconds the process is ended, and late is called before that.
    """
    with forking:  # or the process of another call has this one's pipe open
        read, write = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            raise
        if pid > 0:
            ours.add(pid)
            os.close(write)
    if pid == 0:
        answer(work, write)
    ended = was_late = False

    def over():
        nonlocal was_late
        if not ended:
            was_late = True
            late()
            end(pid)

    limit = limits.set(timeout, over)
    try:
        text, clean = receive(read, pid)
    finally:
        os.close(read)
    if not clean:
        end(pid)
    else:
        kill(pid)  # it is about to end
    os.waitpid(pid, 0)
    ended = True
    limits.clear(limit)
    with forking:
        ours.discard(pid)
    if not clean:
        sweep()
    return text, was_late


def answer(work, write):
    """Does the work, in the process that is there for it, and ends that."""
    try:
        me = os.getpid()
        close_all_but(write)
        os.setsid()
        adopt()
        text = work()
        if os.getpid() == me:  # or it has forked, and this is the other one
            send(write, b"%d%016x" % (has_children(), len(text)) + text)
    except BaseException:
        pass
    finally:
        os._exit(0)


def close_all_but(keep):
    """Closes other callers' connections, and the port. os.closerange would try a million numbers in older versions."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != keep:
            try:
                os.close(int(name))
            except OSError:
                pass  # that of the list itself


def send(write, data):
    while data:
        data = data[os.write(write, data) :]


def has_children():
    """Also reaps those that have ended."""
    try:
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
    except ChildProcessError:
        return False


def receive(read, pid):
    """Returns what a process sends, or None if it ends before that; and whether it has nothing left behind."""
    try:
        process = os.pidfd_open(pid)
    except (AttributeError, OSError):
        process = None
    try:
        poll = select.poll()
        poll.register(read, select.POLLIN)
        if process is not None:
            poll.register(process, select.POLLIN)
        data = bytearray()
        while True:
            if len(data) >= 17 and len(data) >= 17 + int(data[1:17], 16):
                return bytes(data[17 : 17 + int(data[1:17], 16)]), data[:1] == b"0"
            ready = [fd for fd, _ in poll.poll()]
            if read not in ready:
                return None, False  # it has ended, and has sent all that it had to
            part = os.read(read, 1 << 20)
            if not part:
                return None, False
            data += part
    finally:
        if process is not None:
            os.close(process)


def kill(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def end(pid):
    """Ends a process of ours, and all that it has started."""
    try:
        os.kill(pid, signal.SIGSTOP)  # it starts no more
        for _ in range(1000):  # those may, until all of them are found
            left = below(pid)
            if not left:
                break
            for p in left:
                os.kill(p, signal.SIGKILL)
    except OSError:
        pass
    kill(pid)
    try:
        os.kill(pid, signal.SIGKILL)  # it may have left its group
    except OSError:
        pass


def sweep():
    """Ends what calls that have ended have left to this process."""
    for _ in range(1000):
        with forking:
            left = [p for p in children_of(os.getpid()) if p not in ours]
            for p in left:
                end(p)
                try:
                    os.waitpid(p, 0)
                except ChildProcessError:
                    pass
        if not left:
            return


def parents():
    """The children of each process that lives."""
    out = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as f:
                    state, parent = f.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue  # it has just ended
            out.setdefault(int(parent), []).append((int(name), state))
    return out


def children_of(pid):
    """Those too that have ended and were not reaped."""
    return [p for p, _ in parents().get(pid, ())]


def below(pid):
    """All that a process has started, and what that has, as far as it lives."""
    all_of, out, todo = parents(), [], [pid]
    while todo:
        for p, state in all_of.get(todo.pop(), ()):
            todo.append(p)
            if state not in (b"Z", b"X"):
                out.append(p)
    return out
