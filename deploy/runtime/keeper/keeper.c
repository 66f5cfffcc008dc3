// The process that stays with a container, and with each process that is added to one: it has runc make it, keeps its
// streams open while the daemon is away, waits for its end, and writes down how and when it ended. It is started once by
// the daemon, with a socket as descriptor 3, and forks itself for each request that comes there; internal/kubelet/containerd/task
// has the other end and describes the files. It allocates nothing, so that it weighs a few pages.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum {
	REQUESTS = 3,        // the daemon's socket
	REQUEST_SIZE = 8192, // of the longest request
	MAX_ARGS = 32,
	RECORD_SIZE = 64, // of the file exit
};

// A request: its strings, one after the other, each with its final zero.
struct request {
	const char *dir;    // where all files are; the working directory
	int terminal;       // it gets a terminal, through the socket "console" in dir
	const char *in;     // the named pipes of its streams; empty: none
	const char *out;
	const char *err;
	const char *gate;   // the named pipe at which the process waits for its start; empty: it does not wait
	char *command[MAX_ARGS + 1]; // runc's, which leaves the process's number in the file pid
};

static char request_buffer[REQUEST_SIZE];

// What connects two descriptors: it is read into when it is empty, and written from until it is.
struct channel {
	int from, to;
	size_t begin, end;
	char data[2048];
};

static struct channel keys = {.from = -1, .to = -1}, screen = {.from = -1, .to = -1}; // of a terminal
static int keep_in = -1;                          // keeps standard input from ending
static int keep_out = -1, keep_err = -1;          // keep the output for a daemon that is away
static int record = -1, alive = -1, control = -1; // the files exit, alive, control
static int gate = -1;                             // open while the process comes through it
static int children;                              // tells of ended children

// Ends the request: the daemon is told which step failed, and why.
static void fail(int status, const char *what) {
	dprintf(status, "error %s: %s\n", what, strerror(errno));
	_exit(1);
}

static int open_or_fail(int status, const char *path, int flags) {
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		fail(status, path);
	return fd;
}

// Opens the writing end of a stream, a named pipe; *keep is its reading end: without one the process would be killed when it
// writes while no daemon reads. It holds what is not read yet. Of a file of the host's the container would have the file itself.
static int open_output(int status, const char *path, int *keep) {
	struct stat st;

	if (!*path)
		return open_or_fail(status, "/dev/null", O_WRONLY);
	*keep = open_or_fail(status, path, O_RDONLY | O_NONBLOCK);
	if (fstat(*keep, &st) < 0 || !S_ISFIFO(st.st_mode)) {
		errno = ENOTSUP;
		fail(status, path);
	}
	return open_or_fail(status, path, O_WRONLY);
}

// Opens the reading end of standard input, a named pipe; *keep is its writing end.
static int open_input(int status, const char *path, int *keep) {
	int both, fd;

	if (!*path)
		return open_or_fail(status, "/dev/null", O_RDONLY);
	both = open_or_fail(status, path, O_RDWR); // does not wait for the other end
	fd = open_or_fail(status, path, O_RDONLY);
	*keep = open_or_fail(status, path, O_WRONLY);
	close(both);
	return fd;
}

static int listen_for_terminal(int status) {
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "console"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	unlink(addr.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, 1) < 0)
		fail(status, "console");
	return fd;
}

// Receives a message with at most one descriptor, which becomes *fd.
static ssize_t receive(int sock, char *buf, size_t size, int *fd) {
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec part = {.iov_base = buf, .iov_len = size};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n > 0 && (c = CMSG_FIRSTHDR(&m)) && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return n;
}

// Takes the terminal that runc has sent to the socket.
static int take_terminal(int status, int listener) {
	char name[256];
	int fd = -1, conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (conn < 0 || receive(conn, name, sizeof name, &fd) < 0 || fd < 0)
		fail(status, "terminal");
	close(conn);
	close(listener);
	unlink("console");
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		fail(status, "terminal");
	return fd;
}

// Runs runc with the process's streams, and returns its exit status. It ends with this process, should that be killed.
static int run(int status, struct request *r, int in, int out, int err) {
	int how;
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		fail(status, "fork");
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
			_exit(125);
		execv(r->command[0], r->command);
		_exit(127);
	}
	while (waitpid(child, &how, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

// Reads the number of the process that runc has made.
static pid_t read_pid(void) {
	char text[32];
	int fd = open("pid", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	return (pid_t)strtol(text, NULL, 10);
}

// Writes down the end of the process, in one piece into space that is there already, and lets the daemon know by closing
// the file alive. Only then is the process's number free for others.
static void write_end(const siginfo_t *end, pid_t pid) {
	char text[RECORD_SIZE + 1];
	struct timespec now;
	siginfo_t reaped;
	int code = end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(text, sizeof text, "%-63s\n", "");
	text[snprintf(text, sizeof text, "%d %lld.%09ld", code, (long long)now.tv_sec, now.tv_nsec)] = ' ';
	if (pwrite(record, text, RECORD_SIZE, 0) != RECORD_SIZE)
		_exit(1);
	waitid(P_PID, (id_t)pid, &reaped, WEXITED | WNOHANG);
	close(alive);
}

// Reaps what has ended; true if the process itself has.
static int reap(pid_t pid) {
	for (;;) {
		siginfo_t end = {0};

		if (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) < 0 || end.si_pid == 0)
			return 0;
		if (end.si_pid == pid) {
			write_end(&end, pid);
			return 1;
		}
		waitid(P_PID, (id_t)end.si_pid, &end, WEXITED | WNOHANG);
	}
}

// Lets the process run its program: it waits until somebody opens the gate to read, and then writes to it. Were the daemon
// the reader, the process would fail in its write if the daemon were killed in between. That the gate's name is gone tells
// the next daemon that the process was started.
static void open_gate(const char *path) {
	if (*path && gate < 0 && (gate = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) >= 0)
		unlink(path);
}

// The process has written to the gate, and so comes through, or has ended there. The daemon, should it still wait, sees that
// the file started was opened and closed.
static void shut_gate(int written) {
	int started = written ? open("started", O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;

	if (started >= 0)
		close(started);
	close(gate);
	gate = -1;
}

// Obeys the daemon's commands: "start", "size ROWS COLUMNS" of the terminal, and "close" of the input.
static void obey(const char *gate_path) {
	static char text[512];
	static size_t have; // of a command whose end is still to be read
	char *line, *end;
	ssize_t n = read(control, text + have, sizeof text - have);

	if (n <= 0)
		return;
	have += (size_t)n;
	for (line = text; (end = memchr(line, '\n', have)); line = end + 1) {
		struct winsize size = {0};

		*end = 0;
		have -= (size_t)(end + 1 - line);
		if (!strcmp(line, "start"))
			open_gate(gate_path);
		if (!strcmp(line, "close") && keep_in >= 0) {
			close(keep_in);
			keep_in = -1;
		}
		if (screen.from >= 0 && sscanf(line, "size %hu %hu", &size.ws_row, &size.ws_col) == 2)
			ioctl(screen.from, TIOCSWINSZ, &size);
	}
	if (have == sizeof text)
		have = 0; // not a command
	memmove(text, line, have);
}

// Moves what is there; false when the end of the source, or of the target, is reached.
static int move(struct channel *c) {
	ssize_t n;

	if (c->begin == c->end) {
		n = read(c->from, c->data, sizeof c->data);
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		c->begin = 0;
		c->end = (size_t)n;
	}
	n = write(c->to, c->data + c->begin, c->end - c->begin);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->begin += (size_t)n;
	return 1;
}

// What a channel waits for.
static struct pollfd waits(const struct channel *c) {
	if (c->begin == c->end)
		return (struct pollfd){.fd = c->from, .events = POLLIN};
	return (struct pollfd){.fd = c->to, .events = POLLOUT};
}

static int unread(int fd) {
	int n = 0;

	return fd >= 0 && ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

// Stays with the process until it has ended and its output is read: what is in a pipe that nobody has open is lost.
static void stay(pid_t pid, const char *gate_path) {
	int ended = reap(pid), pause = 5;

	for (;;) {
		struct pollfd p[5] = {
			{.fd = ended ? -1 : children, .events = POLLIN}, {.fd = control, .events = POLLIN}, waits(&keys), waits(&screen),
			{.fd = gate, .events = POLLIN},
		};
		struct signalfd_siginfo info;
		int rest = -1;

		if (ended && screen.from < 0) {
			if (!unread(keep_out) && !unread(keep_err))
				return;
			rest = pause; // longer and longer, since the daemon may be away for long
			pause = pause < 1000 ? 2 * pause : pause;
		}
		if (poll(p, 5, rest) < 0 && errno != EINTR)
			_exit(1);
		if (p[4].revents) // first: it may have ended since
			shut_gate(p[4].revents & POLLIN);
		if (p[0].revents && read(children, &info, sizeof info) > 0 && reap(pid))
			ended = 1;
		if (p[1].revents)
			obey(gate_path);
		if (p[2].revents && !move(&keys))
			keys.from = keys.to = -1, keys.begin = keys.end = 0;
		if (p[3].revents && !move(&screen))
			screen.from = screen.to = -1, screen.begin = screen.end = 0;
	}
}

// Does what a request asks for. status is where the daemon hears how it went.
static void keep(struct request *r, int status) {
	char space[RECORD_SIZE + 1];
	int in, out, err, listener = -1, code;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	sigset_t child;
	pid_t pid;

	// Of a process that is stopped and continued nothing is told: that would be work outside its cgroup.
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP}, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	if (chdir(r->dir) < 0)
		fail(status, r->dir);
	// The process becomes this one's child when runc, its parent, has ended.
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || (children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		fail(status, "signals");
	// Who holds the lock of this file is its keeper.
	record = open_or_fail(status, "exit", O_RDWR | O_CREAT);
	memset(space, ' ', RECORD_SIZE);
	if (pwrite(record, space, RECORD_SIZE, 0) != RECORD_SIZE || fcntl(record, F_SETLK, &lock) < 0)
		fail(status, "exit");
	dprintf(status, "begun\n");
	if (mkfifo("alive", 0600) < 0 || mkfifo("control", 0600) < 0)
		fail(status, "mkfifo");
	alive = open_or_fail(status, "alive", O_RDWR);
	control = open_or_fail(status, "control", O_RDWR | O_NONBLOCK);

	in = open_input(status, r->in, &keep_in);
	out = open_output(status, r->out, &keep_out);
	err = open_output(status, r->err, &keep_err);
	if (r->terminal) {
		int null = open_or_fail(status, "/dev/null", O_RDWR);
		listener = listen_for_terminal(status);
		code = run(status, r, null, null, null);
		close(null);
	} else {
		code = run(status, r, in, out, err);
	}
	pid = read_pid();
	if (code != 0 || pid <= 0) {
		dprintf(status, "failed %d\n", code);
		_exit(1);
	}
	if (r->terminal) {
		int terminal = take_terminal(status, listener);
		fcntl(in, F_SETFL, O_NONBLOCK);
		fcntl(out, F_SETFL, O_NONBLOCK | O_APPEND);
		screen.from = terminal;
		screen.to = out;
		if (*r->in) {
			keys.from = in;
			keys.to = terminal;
		}
	} else {
		close(in);
		close(out);
	}
	close(err);
	dprintf(status, "made %d\n", (int)pid);
	close(status);
	stay(pid, r->gate);
	_exit(0);
}

// Takes the strings of a request apart; false if it is not one.
static int parse(char *text, size_t size, struct request *r) {
	const char *fixed[6];
	size_t n = 0;
	char *end = text + size;

	if (size == 0 || end[-1] != 0)
		return 0;
	for (; text < end; text += strlen(text) + 1, n++) {
		if (n < 6)
			fixed[n] = text;
		else if (n - 6 < MAX_ARGS)
			r->command[n - 6] = text;
		else
			return 0;
	}
	if (n < 7)
		return 0;
	r->command[n - 6] = NULL;
	r->dir = fixed[0];
	r->terminal = *fixed[1] != 0;
	r->in = fixed[2];
	r->out = fixed[3];
	r->err = fixed[4];
	r->gate = fixed[5];
	return 1;
}

// main takes requests until the daemon ends. argv[1] is room for the name of what is kept, which people see in ps.
int main(int argc, char **argv) {
	size_t room = argc > 1 ? strlen(argv[1]) : 0;

	signal(SIGCHLD, SIG_IGN); // the kernel reaps the keepers
	signal(SIGPIPE, SIG_IGN); // who asked may have gone
	for (;;) {
		struct request r;
		int status;
		ssize_t n = receive(REQUESTS, request_buffer, sizeof request_buffer, &status);

		if (n <= 0)
			return n < 0;
		if (status < 0)
			continue;
		if (!parse(request_buffer, (size_t)n, &r)) {
			dprintf(status, "error not a request: Invalid argument\n");
			close(status);
			continue;
		}
		switch (fork()) {
		case -1:
			dprintf(status, "error fork: %s\n", strerror(errno));
			break;
		case 0: {
			const char *name = strrchr(r.dir, '/');
			close(REQUESTS);
			if (name)
				strncpy(argv[1], name + 1, room);
			keep(&r, status);
		}
		}
		close(status);
	}
}
