// The first process of a pid namespace that a pod's containers share: it reaps what is orphaned
// and leaves on a signal. It uses no C library, so it is a kilobyte on disk and a page in memory.

#if defined(__x86_64__)
enum { SYS_exit = 60, SYS_pause = 34, SYS_rt_sigaction = 13 };

static long call(long n, long a, long b, long c, long d) {
	long r;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10)
		: "rcx", "r11", "memory");
	return r;
}
#define WAIT() call(SYS_pause, 0, 0, 0, 0)
#elif defined(__aarch64__)
enum { SYS_exit = 93, SYS_ppoll = 73, SYS_rt_sigaction = 134 };

static long call(long n, long a, long b, long c, long d) {
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
		x2 __asm__("x2") = c, x3 __asm__("x3") = d;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}
#define WAIT() call(SYS_ppoll, 0, 0, 0, 0)
#else
#error "pause.c knows x86_64 and aarch64 only"
#endif

enum { SIGINT = 2, SIGTERM = 15, SIGCHLD = 17 };

// What the kernel reads, not what the C library calls a sigaction.
struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static void leave(int sig) {
	call(SYS_exit, 128 + sig, 0, 0, 0);
}

void _start(void) {
	// A child's end that is ignored is reaped by the kernel.
	struct action ignore = {.handler = (void (*)(int))1, .flags = 2 /* SA_NOCLDWAIT */};
	// The handler never returns, so there is nothing to restore; SA_RESTORER must be set all the same.
	struct action quit = {.handler = leave, .flags = 0x04000000};

	call(SYS_rt_sigaction, SIGCHLD, (long)&ignore, 0, sizeof ignore.mask);
	call(SYS_rt_sigaction, SIGTERM, (long)&quit, 0, sizeof quit.mask);
	call(SYS_rt_sigaction, SIGINT, (long)&quit, 0, sizeof quit.mask);
	for (;;)
		WAIT();
}
