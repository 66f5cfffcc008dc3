package hosts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A scenario file says what is done to a lab and what is then expected of it, a line for each step. Blank lines and
// what follows a # are for readers. The steps:
//
//	host NAME [in N]              a host, in the first or the Nth subnet
//	start NAME FLAGS...           starts a master, and waits until it is ready
//	join NAME to MASTER FLAGS...  starts a worker with a token from a master
//	token WORD from MASTER [FLAGS] makes a token for workers, with flags of ctl token create
//	join NAME by WORD FLAGS...    starts a worker with that token
//	add NAME to MASTER FLAGS...   starts a further master with a token for masters
//	restart NAME [FLAGS...]       starts the daemon again as before, or with other flags
//	kill, stop, freeze, thaw NAME SIGKILL, SIGTERM, SIGSTOP, SIGCONT for the daemon
//	logind NAME                   gives the host a system bus with systemd-logind, before its daemon is started
//	shutdown NAME                 shuts the machine down, as systemd does; it boots with restart
//	cut NAME [from | to]          takes the host off the network, or loses only what it sends, or what is sent to it
//	loss NAME PERCENT [from | to] loses so many percent of its packets, each by chance
//	clock NAME DURATION           from its next start on the daemon's time of day is so far ahead; -2h: behind
//	delay NAME DURATION           each of its packets is so long on its way, in both directions
//	part NAME NAME                loses all packets between the two, which reach everybody else
//	move NAME                     gives the host another address in its subnet, and takes the one that it had
//	heal NAME                     ends all of these
//	wipe NAME                     kills the daemon and removes all that it has made
//	crash POD from NAME           has the pod's web server end itself
//	ctl MASTER ARGUMENTS...       runs minik8sd ctl; files are relative to the scenario's directory,
//	                              or with ~/ to the host's data directory
//	kubectl NAME ARGUMENTS...     runs kubectl there, if it is installed, with the kubeconfig that the daemon has written
//	within DURATION               how long the steps that follow may take to become true; 60s at first
//	expect node NAME STATE        Ready, NotReady, Unknown (which is NotReady, too, as for kubectl) or gone
//	expect voters N               so many masters that run vote
//	expect member NAME STATE of MASTER
//	                              the master, when it is asked, says so of a member of the store; gone: it is none
//	expect pods APP N [on NODE | off NODE]
//	                              so many pods with the label app=APP run and are ready, none on another node or on this
//	expect pod NAME on NODE       the pod runs there and is ready
//	expect nopod NAME             there is no such pod
//	expect containers NAME N      so many containers' cgroups on a host have a process, whatever the API says
//	expect same NAME              the pod runs in the same containers as when it was last expected
//	expect again NAME             the pod runs in other containers than when it was last expected
//	expect address NAME           the host's Node and the pods there say the address that the host has now
//	expect lock NAME              a shutdown of the machine would wait for the daemon
//	expect answer POD from NAME   the pod's web server says its name to a host, or to the shell of another pod
//	expect call TARGET from NAME answer WORD
//	                              who asks a Service from a host, or from the shell of a pod, is answered with a word that
//	                              begins so; TARGET is service/NAME, external/NAME or balancer/NAME for an address of it, or nodeport/NAME@HOST
//	expect datagram TARGET from NAME answer WORD
//	                              the same by UDP; the pod is one of the image minik8s/hello
//	expect turns TARGET from NAME N
//	                              who asks twelve times, each time by a new connection, is answered by so many pods
//	expect page URL from NAME [at HOST] answer WORD
//	                              who opens a URL in a host, or in the shell of a pod, gets a page that begins so, or whose code is so;
//	                              its name is asked of the cluster's DNS there, or the page of a host
//	expect announced SERVICE by NAME to HOST
//	                              who asks from HOST by ARP who has a load balancer's address gets one answer, that host's
//	expect silence TARGET from NAME
//	                              who asks it gets no answer for two seconds, and no refusal either
//	expect said NAME TEXT         the daemon has printed the text
//	expect ctl MASTER ARGUMENTS... ctl does that without an error
//	expect kubectl NAME ARGUMENTS... and kubectl
//	expect path MASTER PATH has TEXT
//	                              the master's API answers so at the path; JSON is as it is sent, without spaces
//	expect refused MASTER WORD ARGUMENTS...
//	                              ctl does that with an error that has the word in it
//	expect ended NAME             the daemon has ended by itself
//	alias WORD leader | follower  from now on WORD is the name of the master that leads, or of one that runs and does not
//	alias WORD announcer SERVICE  the same for the host that answers for a load balancer's address
//	pass DURATION                 time goes by in which nothing is to happen
//	say TEXT                      for the people who watch
type Scenario struct {
	Name  string
	dir   string
	steps []step
}

// step is a line.
type step struct {
	number int
	words  []string
}

// Read reads a scenario file. The error names the line.
func Read(path string) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s := &Scenario{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), dir: dir}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if _, ok := verbs[words[0]]; !ok {
			return nil, fmt.Errorf("%s:%d: there is no step %q", path, n, words[0])
		}
		s.steps = append(s.steps, step{n, words})
	}
	return s, lines.Err()
}

// patience is how long a step may take at first.
const patience = 60 * time.Second

// play is a scenario in progress.
type play struct {
	lab        *Lab
	dir        string
	out        io.Writer
	within     time.Duration
	containers map[string]string   // of pods that were expected, by name
	addresses  map[string]string   // theirs
	tokens     map[string][]string // the flags to join with, by the step's word
	aliases    map[string]string   // names of hosts
}

// Play plays the scenario in a lab. Each step is written to out before it is done, and what the commands print. The
// error names the line of the step that failed, and what the daemons have said.
func (s *Scenario) Play(ctx context.Context, lab *Lab, out io.Writer) error {
	p := &play{lab: lab, dir: s.dir, out: out, within: patience, containers: map[string]string{}, addresses: map[string]string{},
		tokens: map[string][]string{}, aliases: map[string]string{}}
	began := time.Now()
	for _, st := range s.steps {
		fmt.Fprintf(out, "%6.2fs  %s\n", time.Since(began).Seconds(), strings.Join(st.words, " "))
		if err := verbs[st.words[0]](p, ctx, p.resolved(st.words)); err != nil {
			return fmt.Errorf("%s:%d: %s: %w%s", s.Name, st.number, strings.Join(st.words, " "), err, p.said())
		}
	}
	fmt.Fprintf(out, "%6.2fs  done\n", time.Since(began).Seconds())
	return nil
}

// resolved are the words of a step after the first, with the names of hosts in the place of aliases.
func (p *play) resolved(words []string) []string {
	out := slices.Clone(words[1:])
	for i, w := range out {
		if name := p.aliases[w]; name != "" && words[0] != "say" && words[0] != "alias" {
			out[i] = name
		}
	}
	return out
}

// said is the end of what each daemon has printed.
func (p *play) said() string {
	const lines = 12
	var b strings.Builder
	for _, h := range p.lab.Hosts() {
		all := strings.Split(strings.TrimSpace(h.Said()), "\n")
		fmt.Fprintf(&b, "\n--- %s said at last:\n%s", h.Name, strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return b.String()
}

// until waits for a condition that no event tells. ok returns why it is not true yet, or nil.
func (p *play) until(ctx context.Context, ok func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	for {
		err := ok(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", p.within, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
