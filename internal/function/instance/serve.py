"""The server in each instance of a Python function of minik8s.

It answers POST / with what the function returns. What the function is, its file says: main(params) takes and returns
JSON; run(arg) takes and returns text, and check(arg), if there is one, says by true or false which function comes next.

Its settings are variables: PORT, MINIK8S_MAIN (the file), MINIK8S_PRERUN (a script that runs first, or nothing),
MINIK8S_VERSION (v1: a fresh process for each call; v2: this one for all).

An answer has X-Minik8s-Outcome: "ok", or whose fault it was: "function" or "caller". A call that runs past its time
(X-Minik8s-Timeout, in seconds) is ended: a fresh process alone, otherwise with the whole instance, which is started again.
"""

import os
import signal

# Until it takes calls there is nothing to wait for. The first process of a container has no other way to end by SIGTERM, and what
# it misses before this line costs the whole grace period.
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

import json
import socket
import subprocess
import sys
import threading
import time
import traceback

MAIN = os.environ.get("MINIK8S_MAIN", "/function/main.py")
FRESH = os.environ.get("MINIK8S_VERSION") == "v1"
LIMIT = 8 << 20  # of a body, in bytes


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
            return "function", "text/plain; charset=utf-8", self.trouble.encode(), ""
        try:
            if self.contract == "json":
                return self.call_json(body)
            return self.call_text(body)
        except CallerError as e:
            return "caller", "text/plain; charset=utf-8", str(e).encode(), ""
        except BaseException:
            return "function", "text/plain; charset=utf-8", cleaned().encode(), ""

    def call_json(self, body):
        params = None
        if body.strip():
            try:
                params = json.loads(body)
            except ValueError as e:
                raise CallerError("the body is not JSON, which main(params) takes: %s" % e) from None
        result = self.main(params)
        try:
            answer = json.dumps(result).encode()
        except (TypeError, ValueError) as e:
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
        return "ok", "text/plain; charset=utf-8", result.encode(), branch


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
            sys.stdout.flush()
            with os.fdopen(write, "wb") as w:
                w.write(answer.encode())
        except BaseException:
            pass
        finally:
            os._exit(0)
    ended = False

    def late():
        if not ended:
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
    if not answer:
        return "function", "text/plain; charset=utf-8", b"the function's process ended without a result", ""
    outcome, kind, text, branch = json.loads(answer)
    return outcome, kind, text.encode("latin-1"), branch


def kill(pid):
    try:
        os.killpg(pid, 9)
    except OSError:
        pass


STATUS = {"ok": "200 OK", "function": "500 Internal Server Error", "caller": "400 Bad Request"}


def answer(sock, status, outcome, kind, body, extra="", close=False):
    head = "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Minik8s-Outcome: %s\r\n%s%s\r\n" % (
        status, kind, len(body), outcome, extra, "Connection: close\r\n" if close else "")
    sock.sendall(head.encode("latin-1") + body)


def refuse(sock, status, why):
    answer(sock, status, "caller", "text/plain; charset=utf-8", why.encode(), close=True)


def converse(sock):
    """Answers the requests of one connection."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with sock, sock.makefile("rb") as reader:
        while True:
            line = reader.readline(65537)
            if not line:
                return
            if line == b"\r\n":
                continue
            words = line.split()
            if len(words) != 3:
                return refuse(sock, "400 Bad Request", "no request line")
            headers = {}
            while True:
                h = reader.readline(65537)
                if not h:
                    return
                if h in (b"\r\n", b"\n"):
                    break
                if len(headers) > 200:
                    return refuse(sock, "431 Request Header Fields Too Large", "too many headers")
                name, _, value = h.partition(b":")
                headers[name.strip().lower()] = value.strip()
            if headers.get(b"expect", b"").lower() == b"100-continue":
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = read_body(reader, headers)
            if body is None:
                return refuse(sock, "413 Content Too Large", "the body has more than %d bytes" % LIMIT)
            close = headers.get(b"connection", b"").lower() == b"close" or words[2] == b"HTTP/1.0"
            if words[0] == b"GET":
                answer(sock, "200 OK", "ok", "text/plain; charset=utf-8", b"ready\n", close=close)
            elif words[0] != b"POST":
                return refuse(sock, "405 Method Not Allowed", "functions are called by POST")
            else:
                serve(sock, headers, body, close)
            if close:
                return


def read_body(reader, headers):
    """The body; None: it is too long."""
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = b""
        while True:
            size = int(reader.readline(100).split(b";")[0], 16)
            if size < 0 or len(body) + size > LIMIT:
                return None
            body += reader.read(size)
            reader.readline(100)
            if size == 0:
                return body
    size = int(headers.get(b"content-length", b"0"))
    if size < 0 or size > LIMIT:
        return None
    return reader.read(size)


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
    timeout = float(headers.get(b"x-minik8s-timeout", b"0"))
    if not 0 <= timeout <= 7 * 86400:  # nor what is no number
        return refuse(sock, "400 Bad Request", "X-Minik8s-Timeout: expected seconds, a week at most")
    began = time.monotonic()
    outcome, kind, text, branch = (call_fresh if FRESH else call_here)(name, body, timeout)
    if outcome != "ok" or name != "-":
        trace = headers.get(b"traceparent", b"").decode("latin-1").split("-")
        log("call %s trace %s %s after %.1f ms" % (name, trace[1] if len(trace) == 4 else "-", outcome, (time.monotonic() - began) * 1000))
    extra = "X-Minik8s-Branch: %s\r\n" % branch if branch else ""
    answer(sock, STATUS[outcome], outcome, kind, text, extra, close)


def connection(sock):
    try:
        converse(sock)
    except (OSError, ValueError):
        pass  # the caller has gone, or speaks no HTTP


def main():
    global function
    script = os.environ.get("MINIK8S_PRERUN")
    if script:
        done = subprocess.run(["/bin/sh", "-e", script], cwd=os.path.dirname(MAIN))
        if done.returncode != 0:
            log("the preRun script ended with code %d" % done.returncode)
            sys.exit(1)
    sys.stdout.reconfigure(line_buffering=True)
    if not FRESH:
        function = Function()
    server = socket.create_server(("", int(os.environ.get("PORT", "8080"))), backlog=512)
    threading.stack_size(512 << 10)
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
