"""The server in each instance of a Python function of minik8s.

It answers POST / with what the function returns. What the function is, its file says: main(params) takes and returns
JSON; run(arg) takes and returns text, and check(arg), if there is one, says by true or false which function comes next.

Its settings are variables: PORT, MINIK8S_MAIN (the file), MINIK8S_PRERUN (a script that runs first, or nothing),
MINIK8S_VERSION (v1: a fresh process for each call; v2: this one for all).

An answer has X-Minik8s-Outcome: "ok", or whose fault it was: "function" or "caller". A call that runs past its time
(X-Minik8s-Timeout, in seconds) is answered with 504 and ended: a fresh process alone, with all that it has started; otherwise with
the instance, which takes no more calls, ends when those that it has have ended, and is started again.

The function may import minik8s: minik8s.call_id() is the id of the call that runs (X-Minik8s-Call), the same whenever the same call
is made again, and minik8s.trace_id() that of its trace. Both are None in threads of the function's own.
"""

import os
import signal

# Until it takes calls there is nothing to wait for. The first process of a container has no other way to end by SIGTERM, and what
# it misses before this line costs the whole grace period.
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

import contextvars
import json
import socket
import sys
import threading
import time
import types

# What only some instances need is imported there: an instance that is started for a call answers a quarter sooner.
from _minik8s_http import HEADER_LIMIT, TEXT, Gone, Refusal, answer, read_body, read_headers, refuse, told

MAIN = os.environ.get("MINIK8S_MAIN", "/function/main.py")
FRESH = os.environ.get("MINIK8S_VERSION") == "v1"

call_id = contextvars.ContextVar("call_id", default=None)
trace_id = contextvars.ContextVar("trace_id", default=None)


def offer_module():
    """Makes the module minik8s, unless the function has one of that name."""
    folder = os.path.dirname(MAIN)
    if any(os.path.exists(os.path.join(folder, name)) for name in ("minik8s", "minik8s.py")):
        return
    module = types.ModuleType("minik8s", "What a function of minik8s may ask of the call that runs.")
    module.call_id = call_id.get
    module.trace_id = trace_id.get
    sys.modules["minik8s"] = module


class CallerError(Exception):
    """What was sent is not what the function takes."""


class Function:
    """The function's file, loaded once. What is wrong with it is told to each caller, and does not end the instance."""

    def __init__(self):
        self.trouble = None
        self.contract = None
        try:
            self.load()
        except BaseException:  # also SystemExit: the file is the user's
            self.trouble = cleaned()

    def load(self):
        sys.path.insert(0, os.path.dirname(MAIN))
        # A module like any other, which the function can import again, or pickle its classes of, by the name of its file.
        name = os.path.splitext(os.path.basename(MAIN))[0]
        module = types.ModuleType(name if name not in sys.modules else "function")
        module.__file__ = MAIN
        sys.modules[module.__name__] = module
        space = module.__dict__
        with open(MAIN, "rb") as f:
            exec(compile(f.read(), MAIN, "exec"), space)
        if callable(space.get("main")):
            self.contract = "json"
            self.main = space["main"]
        elif callable(space.get("run")):
            self.contract = "text"
            self.main = space["run"]
            self.check = space.get("check")
        else:
            raise NameError("the file defines neither main(params) nor run(arg)")

    def call(self, body):
        """Returns the outcome, the answer's type and bytes, and the branch: "", "left" or "right"."""
        if self.trouble:
            return "function", TEXT, told(self.trouble), ""
        try:
            if self.contract == "json":
                return self.call_json(body)
            return self.call_text(body)
        except CallerError as e:
            return "caller", TEXT, told(str(e)), ""
        except BaseException:
            return "function", TEXT, told(cleaned()), ""

    def call_json(self, body):
        params = None
        if body.strip():
            try:
                params = json.loads(body, parse_constant=no_constant)
            except (ValueError, RecursionError) as e:
                raise CallerError("the body is not JSON, which main(params) takes: %s" % e) from None
        result = self.main(params)
        try:
            answer = json.dumps(result, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as e:
            raise TypeError("main returned what is not JSON: %s" % e) from None
        return "ok", "application/json", answer, ""

    def call_text(self, body):
        try:
            arg = body.decode()
        except UnicodeDecodeError as e:
            raise CallerError("the body is not UTF-8 text, which run(arg) takes: %s" % e) from None
        result = self.main(arg)
        if result is None:
            result = ""
        if not isinstance(result, str):
            result = str(result)
        branch = ""
        if callable(self.check):
            branch = "left" if self.check(result) else "right"
        try:
            answer = result.encode()
        except UnicodeEncodeError as e:
            raise TypeError("run returned what is not text: %s" % e) from None
        return "ok", TEXT, answer, branch


def no_constant(name):
    raise ValueError("%s is no number in JSON" % name)


def cleaned():
    """The traceback without this file's lines."""
    import traceback

    kind, err, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(kind, err, trace)).rstrip()


def log(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


function = None
under_way = 0  # calls
code = 0  # with which the instance ends
ending = threading.Event()  # no more connections are taken
counting = threading.Lock()


def end(*_):
    """Ends the instance when its calls have ended: SIGTERM."""
    ending.set()


def wait_for_calls(server):
    ending.wait()
    server.shutdown(socket.SHUT_RDWR)  # who comes now goes elsewhere
    server.close()
    quiet = 0
    while quiet < 5:  # a call may be on its way by a connection that is kept
        time.sleep(0.05)
        with counting:
            quiet = 0 if under_way else quiet + 1
    os._exit(code)


class Limits:
    """The time-outs of all calls under way, which one thread looks after: with a thread for each call, as threading.Timer has it,
    calls wait for each other and for the interpreter's lock, and a trivial function is called a tenth as often."""

    def __init__(self):
        self.changed = threading.Condition()
        self.late = {}  # what to do, and when
        self.next = None  # when the thread looks again; None: there is no thread yet

    def set(self, timeout, late):
        """Calls late after so many seconds, unless what is returned is given to clear before. 0: never."""
        if timeout <= 0:
            return None
        when, key = time.monotonic() + timeout, object()
        with self.changed:
            self.late[key] = (when, late)
            if self.next is None:
                threading.Thread(target=self.look, daemon=True).start()
                self.next = when
            elif when < self.next:
                self.next = when
                self.changed.notify()
        return key

    def clear(self, key):
        if key:
            with self.changed:
                self.late.pop(key, None)

    def look(self):
        while True:
            with self.changed:
                now = time.monotonic()
                over = [key for key, (when, _) in self.late.items() if when <= now]
                todo = [self.late.pop(key)[1] for key in over]
                if not todo:  # a call that ends leaves the thread asleep, until it would have been late
                    self.next = min((when for when, _ in self.late.values()), default=float("inf"))
                    self.changed.wait(None if self.next == float("inf") else self.next - now)
            for late in todo:
                late()


limits = Limits()


def call_here(one, body, timeout):
    """Calls the function in this process. It cannot be stopped here: if it takes too long its caller is told so, and the instance
    ends as soon as the other calls that it has have ended."""

    def late():
        global code
        log("call %s has run for %g s, which is its timeout: the instance ends after its other calls" % (one.name, timeout))
        code = 70
        if one.claim():
            try:
                answer(one.sock, STATUS["late"], "function", TEXT, LATE, close=True)
                one.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the caller has gone
        one.leave()
        ending.set()

    limit = limits.set(timeout, late)
    try:
        return function.call(body)
    finally:
        limits.clear(limit)


def call_fresh(one, body, timeout):
    """Calls the function in a process of its own, which has loaded nothing of it before."""

    def work():
        import random

        random.seed()
        text = json.dumps([v.decode("latin-1") if isinstance(v, bytes) else v for v in Function().call(body)])
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            pass  # the function has closed it
        return text.encode()

    def late():
        log("call %s has run for %g s, which is its timeout: its process ends" % (one.name, timeout))

    import _minik8s_process as process

    text, was_late = process.run(work, limits, timeout, late)
    if text is None and was_late:
        return "late", TEXT, LATE, ""
    if text is None:
        return "function", TEXT, b"the function's process ended without a result", ""
    outcome, kind, text, branch = json.loads(text)
    return outcome, kind, text.encode("latin-1"), branch


LATE = b"the function did not answer within its time"
STATUS = {"ok": "200 OK", "function": "500 Internal Server Error", "late": "504 Gateway Timeout", "caller": "400 Bad Request"}


def converse(sock):
    """Answers the requests of one connection."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with sock, sock.makefile("rb") as reader:
        while True:
            line = reader.readline(HEADER_LIMIT)
            if not line:
                return
            if line == b"\r\n":
                continue
            words = line.split()
            try:
                if len(words) != 3:
                    raise Refusal("400 Bad Request", "no request line")
                headers = read_headers(reader)
                if headers.get(b"expect", b"").lower() == b"100-continue":
                    sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = read_body(reader, headers)
                close = headers.get(b"connection", b"").lower() == b"close" or words[2] == b"HTTP/1.0"
                if words[0] == b"GET":
                    answer(sock, "200 OK", "ok", TEXT, b"ready\n", close=close)
                elif words[0] != b"POST":
                    raise Refusal("405 Method Not Allowed", "functions are called by POST")
                else:
                    serve(sock, headers, body, close)
            except Refusal as e:
                return refuse(sock, e.status, e.why)
            if close:
                return


class Call:
    """A call that is under way. Its answer is sent once, by whoever claims it first: the call, or the end of its time."""

    def __init__(self, sock, headers):
        global under_way
        self.sock = sock
        self.name = headers.get(b"x-minik8s-call", b"-").decode("latin-1")
        self.here = True
        self.answered = False
        with counting:
            under_way += 1

    def claim(self):
        with counting:
            first, self.answered = not self.answered, True
            return first

    def leave(self):
        """It counts no more."""
        global under_way
        with counting:
            under_way -= self.here
            self.here = False


def serve(sock, headers, body, close):
    one = Call(sock, headers)
    try:
        call(one, headers, body, close or ending.is_set())
    finally:
        one.leave()


def call(one, headers, body, close):
    try:
        timeout = float(headers.get(b"x-minik8s-timeout", b"0"))
    except ValueError:
        timeout = -1
    if not 0 <= timeout <= 7 * 86400:  # nor what is no number
        raise Refusal("400 Bad Request", "X-Minik8s-Timeout: expected seconds, a week at most")
    trace = headers.get(b"traceparent", b"").decode("latin-1").split("-")
    trace = trace[1] if len(trace) == 4 else None
    call_id.set(None if one.name == "-" else one.name)
    trace_id.set(trace)
    began = time.monotonic()
    outcome, kind, text, branch = (call_fresh if FRESH else call_here)(one, body, timeout)
    if not one.claim():
        raise Gone()  # its time was over, and its caller was told so
    if outcome != "ok" or one.name != "-":
        log("call %s trace %s %s after %.1f ms" % (one.name, trace or "-", outcome, (time.monotonic() - began) * 1000))
    extra = "X-Minik8s-Branch: %s\r\n" % branch if branch else ""
    answer(one.sock, STATUS[outcome], "function" if outcome == "late" else outcome, kind, text, extra, close)


def connection(sock):
    try:
        converse(sock)
    except (OSError, Gone):
        pass  # the caller has gone


def main():
    global function
    script = os.environ.get("MINIK8S_PRERUN")
    if script:
        import subprocess

        done = subprocess.run(["/bin/sh", "-e", script], cwd=os.path.dirname(MAIN))
        if done.returncode != 0:
            log("the preRun script ended with code %d" % done.returncode)
            sys.exit(1)
    sys.stdout.reconfigure(line_buffering=True)
    offer_module()
    if FRESH:
        import _minik8s_process as process

        process.prepare()
    else:
        function = Function()
    server = socket.create_server(("", int(os.environ.get("PORT", "8080"))), backlog=512)
    threading.stack_size(4 << 20)  # address space alone, until somebody calls that deep
    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=wait_for_calls, args=(server,), daemon=True).start()
    while True:
        try:
            sock, _ = server.accept()
        except OSError:
            if ending.is_set():
                signal.pause()
            time.sleep(0.1)  # it has as many files open as it may, for a moment
            continue
        threading.Thread(target=connection, args=(sock,), daemon=True).start()

