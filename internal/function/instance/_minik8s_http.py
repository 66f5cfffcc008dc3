"""HTTP as the server in an instance speaks it, on one connection."""

LIMIT = 8 << 20  # of a body, in bytes
HEADER_LIMIT = 64 << 10  # of all headers of a request, in bytes
TEXT = "text/plain; charset=utf-8"


class Refusal(Exception):
    """A request that is none: its status, and why."""

    def __init__(self, status, why):
        self.status = status
        self.why = why


class Gone(Exception):
    """The connection ended before the whole request was there."""


def told(text):
    """The bytes of a text for people, whatever is in it."""
    return text.encode("utf-8", "backslashreplace")


def answer(sock, status, outcome, kind, body, extra="", close=False):
    head = "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Minik8s-Outcome: %s\r\n%s%s\r\n" % (
        status, kind, len(body), outcome, extra, "Connection: close\r\n" if close else "")
    sock.sendall(head.encode("latin-1") + body)


def refuse(sock, status, why):
    answer(sock, status, "caller", TEXT, told(why), close=True)


def read_line(reader, most):
    line = reader.readline(most)
    if not line.endswith(b"\n"):
        if len(line) >= most:
            raise Refusal("431 Request Header Fields Too Large", "a line, or all headers together, have more than %d bytes" % HEADER_LIMIT)
        raise Gone()
    return line.rstrip(b"\r\n")


def read_headers(reader):
    headers = {}
    left = HEADER_LIMIT
    while True:
        line = read_line(reader, left)
        if not line:
            return headers
        left -= len(line) + 2
        if left <= 0:
            raise Refusal("431 Request Header Fields Too Large", "the headers have more than %d bytes" % HEADER_LIMIT)
        name, _, value = line.partition(b":")
        headers[name.strip().lower()] = value.strip()


def number(digits, base):
    """A length; what int() takes beyond digits, such as signs, is none."""
    if not digits.isalnum():
        raise Refusal("400 Bad Request", "a length is no number")
    try:
        return int(digits, base)
    except ValueError:
        raise Refusal("400 Bad Request", "a length is no number") from None


def read_exactly(reader, size):
    data = reader.read(size)
    if len(data) < size:
        raise Gone()  # a part of an argument is none
    return data


def read_body(reader, headers):
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        parts, size = [], 0
        while True:
            chunk = number(read_line(reader, 100).split(b";")[0].strip(), 16)
            size += chunk
            if size > LIMIT:
                raise Refusal("413 Content Too Large", "the body has more than %d bytes" % LIMIT)
            if chunk == 0:
                read_headers(reader)  # trailers
                return b"".join(parts)
            parts.append(read_exactly(reader, chunk))
            if read_line(reader, 100):
                raise Refusal("400 Bad Request", "a chunk is longer than it says")
    size = number(headers.get(b"content-length", b"0"), 10)
    if size > LIMIT:
        raise Refusal("413 Content Too Large", "the body has more than %d bytes" % LIMIT)
    return read_exactly(reader, size)
