package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/membership"
)

// verb does a step.
type verb func(p *play, ctx context.Context, args []string) error

// verbs are what a line can begin with.
var verbs = map[string]verb{
	"host": (*play).host, "start": (*play).start, "join": joins("worker"), "add": joins("master"),
	"restart": (*play).restart, "token": (*play).token, "alias": (*play).alias,
	"kill": signal(syscall.SIGKILL), "stop": signal(syscall.SIGTERM), "freeze": signal(syscall.SIGSTOP), "thaw": signal(syscall.SIGCONT),
	"logind": (*play).stepLogind, "shutdown": (*play).shutdown,
	"cut": (*play).stepCut, "loss": (*play).stepLoss, "heal": onHost((*Host).Heal), "move": onHost((*Host).Move), "wipe": onHost((*Host).Wipe),
	"clock": (*play).clock, "delay": (*play).stepDelay, "part": (*play).stepPart,
	"crash": (*play).crash, "ctl": (*play).ctl, "kubectl": (*play).kubectl, "within": (*play).setWithin, "pass": (*play).pass, "expect": (*play).expect,
	"say": func(*play, context.Context, []string) error { return nil },
}

// expectations are what can follow "expect".
var expectations = map[string]verb{
	"node": (*play).expectNode, "voters": (*play).expectVoters, "pods": (*play).expectPods, "pod": (*play).expectPod, "same": (*play).expectSame, "again": (*play).expectAgain,
	"announced": (*play).expectAnnounced, "address": (*play).expectAddress, "lock": (*play).expectLock, "answer": (*play).expectAnswer, "call": (*play).expectCall, "datagram": (*play).expectDatagram, "turns": (*play).expectTurns, "page": (*play).expectPage, "silence": (*play).expectSilence, "said": (*play).expectSaid, "ended": (*play).expectEnded,
	"ctl": (*play).ctl, "refused": (*play).expectRefused, "member": (*play).expectMember, "kubectl": (*play).kubectl, "path": (*play).expectPath, "nopod": (*play).expectNoPod, "containers": (*play).expectContainers,
}

var errWords = errors.New("the step has too few words, or too many; see hosts.Scenario")

// clock is the step "clock NAME DURATION".
func (p *play) clock(_ context.Context, args []string) error {
	if len(args) != 2 {
		return errWords
	}
	h, err := p.named(args[0])
	if err == nil {
		h.ClockOffset, err = time.ParseDuration(args[1])
	}
	return err
}

func (p *play) named(name string) (*Host, error) {
	if h := p.lab.Host(name); h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("there is no host %s", name)
}

// onHost is a step that names a host.
func onHost(do func(h *Host) error) verb {
	return func(p *play, _ context.Context, args []string) error {
		if len(args) != 1 {
			return errWords
		}
		h, err := p.named(args[0])
		if err != nil {
			return err
		}
		return do(h)
	}
}

func signal(sig syscall.Signal) verb {
	return onHost(func(h *Host) error { return h.Signal(sig) })
}

func (p *play) host(_ context.Context, args []string) error {
	subnet := 1
	if len(args) == 3 && args[1] == "in" {
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 1 || n > 200 {
			return fmt.Errorf("%q is no subnet: they are counted from 1", args[2])
		}
		subnet = n
	} else if len(args) != 1 {
		return errWords
	}
	_, err := p.lab.Add(args[0], subnet)
	return err
}

func (p *play) start(ctx context.Context, args []string) error {
	if len(args) < 1 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	if err := h.Start(append([]string{"--role=master,worker"}, p.files(h, args[1:])...)...); err != nil {
		return err
	}
	return p.untilReady(ctx, h)
}

func (p *play) restart(_ context.Context, args []string) error {
	if len(args) < 1 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	return h.Start(p.files(h, args[1:])...)
}

func (p *play) stepLogind(_ context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	return h.StartLogind(time.Minute)
}

func (p *play) expectLock(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	return p.until(ctx, func(context.Context) error {
		if h.Logind() == nil || !h.Logind().LockedBy(h.Pid()) {
			return errors.New("the daemon has no lock of logind")
		}
		return nil
	})
}

func (p *play) shutdown(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	return h.ShutDown(ctx)
}

func (p *play) untilReady(ctx context.Context, h *Host) error {
	return p.until(ctx, func(ctx context.Context) error {
		if !h.Running() {
			return errors.New("the daemon has ended")
		}
		if !h.Ready(ctx) {
			return errors.New("it is not ready")
		}
		return nil
	})
}

// joins is a step with which a host joins another one's cluster in a role.
func joins(role string) verb {
	return func(p *play, ctx context.Context, args []string) error { return p.join(ctx, role, args) }
}

func (p *play) join(ctx context.Context, role string, args []string) error {
	if len(args) < 3 || args[1] != "to" && args[1] != "by" {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	flags := p.tokens[args[2]]
	if args[1] == "to" {
		if flags, err = p.newToken(ctx, args[2], "--role="+role); err != nil {
			return err
		}
	}
	if flags == nil {
		return fmt.Errorf("there is no token %s", args[2])
	}
	return h.Start(slices.Concat(flags, p.files(h, args[3:]))...)
}

// token is the step "token WORD from MASTER [FLAGS]".
func (p *play) token(ctx context.Context, args []string) (err error) {
	if len(args) < 3 || args[1] != "from" {
		return errWords
	}
	p.tokens[args[0]], err = p.newToken(ctx, args[2], args[3:]...)
	return err
}

// newToken has a master make a token, and returns the flags to join with.
func (p *play) newToken(ctx context.Context, master string, flags ...string) ([]string, error) {
	h, err := p.named(master)
	if err != nil {
		return nil, err
	}
	var line string
	err = p.until(ctx, func(context.Context) error { // the CA is published a moment after a master is ready
		line, err = h.Ctl(append([]string{"token", "create"}, flags...)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	words := strings.Fields(line) // "minik8sd --role=... --server=... --token=..."
	if len(words) < 2 {
		return nil, fmt.Errorf("token create printed %q", line)
	}
	return words[1:], nil
}

// alias is the step "alias WORD leader | follower", or "alias WORD announcer SERVICE".
func (p *play) alias(ctx context.Context, args []string) error {
	if len(args) == 3 && args[1] == "announcer" {
		return p.until(ctx, func(ctx context.Context) error {
			name, err := p.announcer(ctx, args[2])
			if err == nil {
				p.aliases[args[0]] = name
				fmt.Fprintf(p.out, "         | %s is %s\n", args[0], name)
			}
			return err
		})
	}
	if len(args) != 2 || args[1] != "leader" && args[1] != "follower" {
		return errWords
	}
	return p.until(ctx, func(ctx context.Context) error {
		members, err := p.members(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			h := p.lab.Host(m.Name)
			if h != nil && h.Running() && !h.cut && m.Role != membership.Learner && (m.Role == membership.Leader) == (args[1] == "leader") {
				p.aliases[args[0]] = h.Name
				fmt.Fprintf(p.out, "         | %s is %s\n", args[0], h.Name)
				return nil
			}
		}
		return fmt.Errorf("none of %v is it", members)
	})
}

func (p *play) ctl(_ context.Context, args []string) error {
	if len(args) < 2 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	out, err := h.Ctl(p.files(h, args[1:])...)
	p.show(out)
	return err
}

// files makes paths of the names of files among a command's arguments.
func (p *play) files(h *Host, args []string) []string {
	out := append([]string(nil), args...)
	for i := range out {
		if name, ok := strings.CutPrefix(out[i], "~/"); ok {
			out[i] = filepath.Join(h.dir, name)
		} else if name, ok := strings.CutPrefix(out[i], "--node-config="); ok {
			out[i] = "--node-config=" + filepath.Join(p.dir, name)
		} else if i > 0 && out[i-1] == "-f" {
			out[i] = filepath.Join(p.dir, out[i])
		}
	}
	return out
}

// kubectl is that of the host, which may be a worker. On machines without kubectl ctl gets objects in its place, by the same kubeconfig;
// other steps are left out there.
func (p *play) kubectl(_ context.Context, args []string) error {
	if len(args) < 2 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	run := h.Kubectl
	if _, err := exec.LookPath("kubectl"); err != nil {
		if args[1] != "get" {
			p.show("not done: " + err.Error())
			return nil
		}
		run = h.CtlByKubeconfig
	}
	out, err := run(args[1:]...)
	p.show(out)
	return err
}

func (p *play) show(out string) {
	for line := range strings.Lines(out) {
		fmt.Fprintf(p.out, "         | %s\n", strings.TrimRight(line, "\n"))
	}
}

// crash ends a pod's web server by its own page for that. The answer may be cut off by the end.
func (p *play) crash(ctx context.Context, args []string) error {
	if len(args) != 3 || args[1] != "from" {
		return errWords
	}
	h, err := p.named(args[2])
	if err != nil {
		return err
	}
	if p.addresses[args[0]] == "" {
		return errors.New("its address is not known: expect the pod first")
	}
	h.Get(ctx, "http://"+p.addresses[args[0]]+"/exit?code=1") //nolint:errcheck // as above
	return nil
}

func (p *play) setWithin(_ context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errWords
	}
	p.within, err = time.ParseDuration(args[0])
	return err
}

// pass is the step "pass DURATION".
func (p *play) pass(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (p *play) expect(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errWords
	}
	check, ok := expectations[args[0]]
	if !ok {
		return fmt.Errorf("nothing is known about %q", args[0])
	}
	return p.until(ctx, func(ctx context.Context) error { return check(p, ctx, args[1:]) })
}

// master is the first master that runs and is not cut off, or else the first that runs: its socket answers all the same.
func (p *play) master() (found *Host, err error) {
	for _, h := range p.lab.Hosts() {
		if _, err := h.API(); err != nil || !h.Running() {
			continue
		}
		if !h.cut {
			return h, nil
		}
		if found == nil {
			found = h
		}
	}
	if found == nil {
		return nil, errors.New("no master runs")
	}
	return found, nil
}

func (p *play) api() (client.Interface, error) {
	h, err := p.master()
	if err != nil {
		return nil, err
	}
	return h.API()
}

// members are those of the store, as a master says.
func (p *play) members(ctx context.Context) ([]membership.Member, error) {
	h, err := p.master()
	if err != nil {
		return nil, err
	}
	api, err := h.API()
	if err != nil {
		return nil, err
	}
	resp, err := api.Do(ctx, http.MethodGet, membership.Path, nil, "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var list membership.List
	err = json.NewDecoder(resp.Body).Decode(&list)
	return list.Members, err
}

// expectVoters expects that so many masters vote, of those whose daemon runs.
func (p *play) expectVoters(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	members, err := p.members(ctx)
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range members {
		if h := p.lab.Host(m.Name); m.Role != membership.Learner && h != nil && h.Running() {
			voters++
		}
	}
	if strconv.Itoa(voters) != args[0] {
		return fmt.Errorf("%d vote: %+v", voters, members)
	}
	return nil
}

func (p *play) expectNode(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errWords
	}
	c, err := p.api()
	if err != nil {
		return err
	}
	state := "gone"
	node, err := client.Get[*corev1.Node](ctx, c, client.Key{Kind: api.Nodes, Name: args[0]})
	switch {
	case err == nil:
		state = nodeState(node)
	case !apierrors.IsNotFound(err):
		return err
	}
	if state != args[1] && !(state == "Unknown" && args[1] == "NotReady") {
		return fmt.Errorf("it is %s", state)
	}
	return nil
}

// nodeState is how a node is. It is Ready only when it takes pods again, too: its taints are lifted a moment later.
func nodeState(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		switch c.Status {
		case corev1.ConditionFalse:
			return "NotReady"
		case corev1.ConditionUnknown:
			return "Unknown"
		}
		for _, t := range n.Spec.Taints {
			if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
				return "Ready, with the taint " + t.Key
			}
		}
		return "Ready"
	}
	return "Pending"
}

// ready reports whether a pod runs and is ready.
func ready(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (p *play) expectPods(ctx context.Context, args []string) error {
	if len(args) != 2 && len(args) != 4 {
		return errWords
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, err := p.api()
	if err != nil {
		return err
	}
	pods, _, err := client.All[*corev1.Pod](ctx, c, api.Pods,
		client.ListOptions{Namespace: metav1.NamespaceDefault, Labels: labels.SelectorFromSet(labels.Set{"app": args[0]})})
	if err != nil {
		return err
	}
	run, where := 0, []string{}
	for _, pod := range pods {
		where = append(where, fmt.Sprintf("%s %s on %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName))
		if !ready(pod) || len(args) == 4 && (pod.Spec.NodeName == args[3]) != (args[2] == "on") {
			continue
		}
		run++
	}
	if run != want {
		return fmt.Errorf("%d do: %s", run, strings.Join(where, ", "))
	}
	return nil
}

func (p *play) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	c, err := p.api()
	if err != nil {
		return nil, err
	}
	return client.Get[*corev1.Pod](ctx, c, client.Key{Kind: api.Pods, Namespace: metav1.NamespaceDefault, Name: name})
}

// containersOf are the pod's containers, which change when one is started anew.
func containersOf(pod *corev1.Pod) string {
	var ids []string
	for _, c := range pod.Status.ContainerStatuses {
		ids = append(ids, c.ContainerID)
	}
	return strings.Join(ids, " ")
}

func (p *play) expectPod(ctx context.Context, args []string) error {
	if len(args) != 3 || args[1] != "on" {
		return errWords
	}
	pod, err := p.pod(ctx, args[0])
	if err != nil {
		return err
	}
	if !ready(pod) || pod.Spec.NodeName != args[2] {
		return fmt.Errorf("it is %s on %q", pod.Status.Phase, pod.Spec.NodeName)
	}
	p.containers[pod.Name], p.addresses[pod.Name] = containersOf(pod), pod.Status.PodIP
	return nil
}

func (p *play) expectSame(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	pod, err := p.pod(ctx, args[0])
	if err != nil {
		return err
	}
	if now := containersOf(pod); !ready(pod) || now != p.containers[pod.Name] {
		return fmt.Errorf("it is %s with %s, not %s", pod.Status.Phase, now, p.containers[pod.Name])
	}
	return nil
}

func (p *play) expectAgain(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	pod, err := p.pod(ctx, args[0])
	if err != nil {
		return err
	}
	now := containersOf(pod)
	if !ready(pod) || now == "" || now == p.containers[pod.Name] {
		return fmt.Errorf("it is %s with %s, as it was", pod.Status.Phase, now)
	}
	p.containers[pod.Name] = now
	return nil
}

func (p *play) expectAnswer(ctx context.Context, args []string) error {
	if len(args) != 3 || args[1] != "from" {
		return errWords
	}
	if pod, err := p.pod(ctx, args[0]); err == nil { // without a master it is the address from before
		p.addresses[args[0]] = pod.Status.PodIP
	}
	if p.addresses[args[0]] == "" {
		return errors.New("it has no address")
	}
	var err error
	url, got := "http://"+p.addresses[args[0]]+"/", ""
	if h := p.lab.Host(args[2]); h != nil {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		got, err = h.Get(ctx, url)
	} else {
		got, err = p.shell(args[2], "wget -qO- "+url)
	}
	if err != nil {
		return err
	}
	if got != args[0] {
		return fmt.Errorf("it answers %q", got)
	}
	return nil
}

// shell runs a command in a pod.
func (p *play) shell(pod, command string) (string, error) {
	h, err := p.master()
	if err != nil {
		return "", err
	}
	out, err := h.Ctl("exec", pod, "--", "sh", "-c", command)
	return strings.TrimSpace(out), err
}

func (p *play) expectSaid(_ context.Context, args []string) error {
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	if !strings.Contains(h.Said(), strings.Join(args[1:], " ")) {
		return errors.New("it has not said so")
	}
	return nil
}

func (p *play) expectEnded(_ context.Context, args []string) error {
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	if h.Running() {
		return errors.New("it runs")
	}
	return nil
}

func (p *play) expectNoPod(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	pod, err := p.pod(ctx, args[0])
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("it is %s on %s", pod.Status.Phase, pod.Spec.NodeName)
}

// expectContainers counts what really runs on a host.
func (p *play) expectContainers(_ context.Context, args []string) error {
	if len(args) != 2 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if n := h.Containers(); n != want {
		return fmt.Errorf("%d run", n)
	}
	return nil
}
