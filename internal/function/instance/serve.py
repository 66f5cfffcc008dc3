"""The server in each instance of a Python function of minik8s.

It answers POST / with what the function returns. What the function is, its file says: main(params) takes and returns
JSON; run(arg) takes and returns text, and check(arg), if there is one, says by true or false which function comes next.

Its settings are variables: PORT, MINIK8S_MAIN (the file), MINIK8S_PRERUN (a script that runs first, or nothing),
MINIK8S_VERSION (v1: a fresh process for each call; v2: this one for all).

An answer has X-Minik8s-Outcome: "ok", or whose fault it was: "function" or "caller". A call that runs past its time
(X-Minik8s-Timeout, in seconds) is ended: a fresh process alone, otherwise with the whole instance, which is started again.

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
import subprocess
import sys
import threading
import time
import traceback
import types

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
        space = {"__name__": "function", "__file__": MAIN}
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
    kind, err, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(kind, err, trace)).rstrip()


def log(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


function = None
under_way = 0  # calls
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
    os._exit(0)


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


def call_here(call, body, timeout):
    """Calls the function in this process. It cannot be stopped here, so the instance ends if it takes too long."""

    def late():
        log("call %s has run for %g s, which is its timeout: the instance ends" % (call, timeout))
        os._exit(70)

    limit = limits.set(timeout, late)
    try:
        return function.call(body)
    finally:
        limits.clear(limit)


forking = threading.Lock()


def call_fresh(call, body, timeout):
    """Calls the function in a process of its own, which has loaded nothing of it before."""
    with forking:  # or the process of another call has this one's pipe open, and keeps it from ending
        read, write = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            raise
        if pid > 0:
            os.close(write)
    if pid == 0:
        try:
            os.close(read)
            os.setsid()
            import random

            random.seed()
            answer = json.dumps([v.decode("latin-1") if isinstance(v, bytes) else v for v in Function().call(body)])
            try:
                sys.stdout.flush()
            except (OSError, ValueError):
                pass  # the function has closed it
            with os.fdopen(write, "wb") as w:
                w.write(answer.encode())
        except BaseException:
            pass
        finally:
            os._exit(0)
    ended = was_late = False

    def late():
        nonlocal was_late
        if not ended:
            was_late = True
            log("call %s has run for %g s, which is its timeout: its process ends" % (call, timeout))
            kill(pid)

    limit = limits.set(timeout, late)
    try:
        with os.fdopen(read, "rb") as r:
            answer = r.read()
        kill(pid)  # also what it has left behind
        os.waitpid(pid, 0)
        ended = True
    finally:
        limits.clear(limit)
    if not answer and was_late:
        return "late", TEXT, b"the function did not answer within its time", ""
    if not answer:
        return "function", TEXT, b"the function's process ended without a result", ""
    outcome, kind, text, branch = json.loads(answer)
    return outcome, kind, text.encode("latin-1"), branch


def kill(pid):
    try:
        os.killpg(pid, 9)
    except OSError:
        pass


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


def serve(sock, headers, body, close):
    global under_way
    with counting:
        under_way += 1
    try:
        call(sock, headers, body, close or ending.is_set())
    finally:
        with counting:
            under_way -= 1


def call(sock, headers, body, close):
    name = headers.get(b"x-minik8s-call", b"-").decode("latin-1")
    try:
        timeout = float(headers.get(b"x-minik8s-timeout", b"0"))
    except ValueError:
        timeout = -1
    if not 0 <= timeout <= 7 * 86400:  # nor what is no number
        raise Refusal("400 Bad Request", "X-Minik8s-Timeout: expected seconds, a week at most")
    trace = headers.get(b"traceparent", b"").decode("latin-1").split("-")
    trace = trace[1] if len(trace) == 4 else None
    call_id.set(None if name == "-" else name)
    trace_id.set(trace)
    began = time.monotonic()
    outcome, kind, text, branch = (call_fresh if FRESH else call_here)(name, body, timeout)
    if outcome != "ok" or name != "-":
        log("call %s trace %s %s after %.1f ms" % (name, trace or "-", outcome, (time.monotonic() - began) * 1000))
    extra = "X-Minik8s-Branch: %s\r\n" % branch if branch else ""
    answer(sock, STATUS[outcome], "function" if outcome == "late" else outcome, kind, text, extra, close)


def connection(sock):
    try:
        converse(sock)
    except (OSError, Gone):
        pass  # the caller has gone


def main():
    global function
    script = os.environ.get("MINIK8S_PRERUN")
    if script:
        done = subprocess.run(["/bin/sh", "-e", script], cwd=os.path.dirname(MAIN))
        if done.returncode != 0:
            log("the preRun script ended with code %d" % done.returncode)
            sys.exit(1)
    sys.stdout.reconfigure(line_buffering=True)
    offer_module()
    if not FRESH:
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


if __name__ == "__main__":
    main()
