package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"minik8s/internal/slurm/batch"
	"minik8s/internal/slurm/login"
)

// Cluster is a Slurm cluster, behind its login node. Its methods may be called from any goroutine.
type Cluster struct {
	node   *login.Node
	folder string

	mu   sync.Mutex
	base string // absolute, once it is known
}

// New makes a cluster. The folder is where jobs have theirs: absolute, or below the user's home.
func New(node *login.Node, folder string) *Cluster {
	return &Cluster{node: node, folder: folder}
}

// ErrNoSlurm is a login node without Slurm's commands.
var ErrNoSlurm = errors.New("there is no sbatch, squeue, scancel or flock on the login node: is it one, and does its PATH have them without a login shell?")

// Open makes sure that the cluster can be reached and has its folders.
func (c *Cluster) Open(ctx context.Context) error {
	_, err := c.open(ctx)
	return err
}

// Login opens the connection with the help of a person, where one is needed; see package login.
func (c *Cluster) Login(ctx context.Context, ask login.Ask) error { return c.node.Login(ctx, ask) }

// ByPerson reports whether there is a connection that a person has opened, and that nobody else can open again.
func (c *Cluster) ByPerson() bool { return c.node.ByPerson() }

// Close ends the connection.
func (c *Cluster) Close() { c.node.Close() }

// prelude comes before commands of Slurm: centres have them in the PATH of login shells alone.
const prelude = `command -v sbatch >/dev/null 2>&1 || { PATH=$(bash -lc 'printf "\n%s" "$PATH"' </dev/null 2>/dev/null | tail -n 1):$PATH; export PATH; }
umask 077
`

func (c *Cluster) open(ctx context.Context) (string, error) {
	c.mu.Lock()
	base := c.base
	c.mu.Unlock()
	if base != "" {
		return base, c.node.Connect(ctx)
	}
	out, err := c.node.Run(ctx, prelude+`for c in sbatch squeue scancel flock; do command -v $c >/dev/null 2>&1 || exit 69; done
cd && mkdir -p -- `+batch.Quote(c.folder)+` && cd -- `+batch.Quote(c.folder)+` && mkdir -p marks jobs && chmod 700 . marks jobs && pwd -P`)
	var ended *login.ExitError
	switch {
	case errors.As(err, &ended) && ended.Code == 69:
		return "", ErrNoSlurm
	case err != nil:
		return "", err
	}
	base = strings.TrimSpace(string(out))
	if !path.IsAbs(base) {
		return "", fmt.Errorf("the login node says %q for its folder: expected an absolute path", base)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = base
	return base, nil
}

// Layout is where a job lies on the login node.
func (c *Cluster) Layout(ctx context.Context, name, uid string) (batch.Layout, error) {
	base, err := c.open(ctx)
	return batch.Layout{Base: base, Name: name, UID: uid}, err
}

// ErrUnderWay is a Start whose script on the login node is still at work, compiling for instance: a mark will say how it went.
var ErrUnderWay = errors.New("the job is being compiled or submitted")

// Start puts the job on the login node, and has it compiled and submitted there unless it already was. It returns the mark
// that says how it went: submitted, refused or uncompiled. ErrUnderWay means that the mark comes later. After any other error
// it may be called again; nothing is submitted twice. The uploaded sources and files go below the job's files, into the folder into.
func (c *Cluster) Start(ctx context.Context, j *batch.Job, into string, files []File) (batch.Mark, error) {
	bundle, err := pack(j, into, files)
	if err != nil {
		return batch.Mark{}, err
	}
	sftp, err := c.node.Files(ctx)
	if err != nil {
		return batch.Mark{}, err
	}
	part, err := randomName(j.Layout.Folder() + ".bundle")
	if err != nil {
		return batch.Mark{}, err
	}
	f, err := sftp.Create(part)
	if err == nil {
		_, err = f.Write(bundle)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		sftp.Remove(part)
		return batch.Mark{}, fmt.Errorf("the job's files on the login node: %w", diskFull(err))
	}
	sum := sha256.Sum256(bundle)
	out, err := c.node.Run(ctx, c.startScript(j, into, part, hex.EncodeToString(sum[:])))
	var ended *login.ExitError
	switch {
	case errors.As(err, &ended) && ended.Code == batch.StartBusy:
		return batch.Mark{}, ErrUnderWay
	case errors.As(err, &ended):
		text := strings.TrimSpace(string(out) + "\n" + ended.Stderr)
		return batch.Mark{}, fmt.Errorf("on the login node: %s", text)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return batch.Mark{}, ErrUnderWay
	case err != nil:
		return batch.Mark{}, err
	}
	kind, text, _ := strings.Cut(string(out), "\n")
	kind = strings.TrimPrefix(kind, "mark ")
	if kind == "" {
		return batch.Mark{}, ErrUnderWay
	}
	return batch.ParseMark(j.UID, "", kind, text), nil
}

// startScript unpacks and runs start.sh in a session of its own, so that it ends its work whatever becomes of ours.
func (c *Cluster) startScript(j *batch.Job, into, part, sum string) string {
	l := j.Layout
	return prelude + "job=" + batch.Quote(l.Folder()) + "\nfiles=" + batch.Quote(path.Join(l.Files(), into)) + "\nbundle=" + batch.Quote(part) +
		"\nsources=" + batch.Quote(sourcesOf(l)) + "\nmarks=" + batch.Quote(l.Marks()+"/"+j.UID) + `
fail() { printf '%s\n' "$1"; exit 74; }
mkdir -p -- "$job/ends" "$files" || fail "the job's folder cannot be made"
cd -- "$job" || exit 74
exec 9>lock
if ! flock -n 9; then rm -f -- "$bundle"; exit 75; fi # it is being compiled or submitted
if [ ! -f jobid ] && [ ! -f tried ]; then
	[ "$(sha256sum <"$bundle" | cut -c1-64)" = ` + sum + ` ] || fail "the upload is not whole"
	[ ! -f "$sources" ] || rm -f compiled
	without=
	[ ! -f compiled ] || without=--exclude=files # what was compiled stays as it is
	tar -xf "$bundle" --no-same-owner $without || fail "the job's files cannot be unpacked"
	if [ -f "$sources" ]; then tar -C "$files" -xf "$sources" --no-same-owner && rm -f -- "$sources" || fail "the sources cannot be unpacked"; fi
fi
rm -f -- "$bundle"
exec 9>&-
rm -f start.code
{ setsid sh start.sh >start.out 2>&1; echo $? >start.code.new; mv -f start.code.new start.code; } </dev/null >/dev/null 2>&1 &
n=0
until [ -f start.code ]; do # for a second: a session is not for compiling
	n=$((n+1)); [ $n -lt 50 ] || exit 75
	sleep 0.02
done
code=$(cat start.code)
[ $code = 0 ] || { [ $code = 75 ] || cat start.out; exit $code; }
for kind in submitted refused uncompiled; do
	if [ -f "$marks.$kind" ]; then printf 'mark %s\n' $kind; cat "$marks.$kind"; exit; fi
done
[ ! -s jobid ] || printf 'mark submitted\njob=%s\n' "$(cat jobid)"
`
}

// Marks is the word that jobs have left. Forget removes it, once it is kept elsewhere.
func (c *Cluster) Marks(ctx context.Context) ([]batch.Mark, error) {
	base, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	files, err := c.node.Files(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := files.ReadDirContext(ctx, base+"/marks")
	if err != nil {
		return nil, fmt.Errorf("marks on the login node: %w", err)
	}
	found := false
	for _, e := range entries {
		if _, _, _, ok := batch.ParseMarkName(e.Name()); ok {
			found = true
		}
	}
	if !found {
		return nil, nil
	}
	// One command reads them all, however many there are.
	out, err := c.node.Run(ctx, "cd "+batch.Quote(base+"/marks")+" && grep -rsH '' . || [ $? -le 2 ]") // 2: a mark went while it was read
	if err != nil {
		return nil, fmt.Errorf("marks on the login node: %w", err)
	}
	texts, order := map[string]string{}, []string(nil)
	for line := range strings.Lines(string(out)) {
		name, text, ok := strings.Cut(strings.TrimPrefix(line, "./"), ":")
		if _, _, _, mark := batch.ParseMarkName(name); !ok || !mark {
			continue
		}
		if _, seen := texts[name]; !seen {
			order = append(order, name)
		}
		texts[name] += text
	}
	var marks []batch.Mark
	for _, name := range order {
		uid, task, kind, _ := batch.ParseMarkName(name)
		marks = append(marks, batch.ParseMark(uid, task, kind, texts[name]))
	}
	return marks, nil
}

// Forget removes marks.
func (c *Cluster) Forget(ctx context.Context, marks []batch.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	base, err := c.open(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("cd " + batch.Quote(base+"/marks") + " && xargs rm -f -- <<'NAMES'\n")
	for _, m := range marks {
		name := m.UID + "." + m.Kind
		if m.Task != "" {
			name = m.UID + "." + m.Task + "." + m.Kind
		}
		b.WriteString(name + "\n")
	}
	b.WriteString("NAMES\n")
	_, err = c.node.Run(ctx, b.String())
	return err
}

// Queue is what Slurm says of all the user's jobs, those too that ended a few minutes ago, and those in partitions that are hidden. One call of squeue.
func (c *Cluster) Queue(ctx context.Context) ([]batch.Seen, error) {
	out, err := c.node.Run(ctx, prelude+batch.Environment+`squeue --noheader --all --user="$(id -un)" --states=all --format=`+batch.Quote(batch.QueueFormat))
	if err != nil {
		return nil, fmt.Errorf("squeue: %w", err)
	}
	return batch.ParseQueue(string(out))
}

// Account is what Slurm's accounting says of jobs that squeue no longer knows, by their numbers. One call of sacct. A cluster
// without accounting gives none.
func (c *Cluster) Account(ctx context.Context, ids []string) ([]batch.Seen, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := c.node.Run(ctx, prelude+`command -v sacct >/dev/null 2>&1 || exit 0
`+batch.Environment+`sacct --allocations --noheader --parsable2 --jobs=`+batch.Quote(strings.Join(ids, ","))+` --format=`+batch.AccountFormat)
	var ended *login.ExitError
	if errors.As(err, &ended) && strings.Contains(ended.Stderr, "accounting storage is disabled") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sacct: %w", err)
	}
	return batch.ParseAccount(string(out))
}

// Ends is what a job's tasks left in its folder when they ended, by task; a job that is no array is task 0. Submitted is the
// job's number, if it was submitted.
func (c *Cluster) Ends(ctx context.Context, l batch.Layout) (ends map[string]batch.Mark, submitted string, err error) {
	out, err := c.node.Run(ctx, "cd "+batch.Quote(l.Folder())+" 2>/dev/null || exit 0\ngrep -H '' jobid; cd ends && grep -rsH '' . || [ $? -le 2 ]")
	if err != nil {
		return nil, "", err
	}
	ends = map[string]batch.Mark{}
	for line := range strings.Lines(string(out)) {
		name, text, _ := strings.Cut(strings.TrimPrefix(line, "./"), ":")
		switch {
		case name == "jobid":
			submitted = strings.TrimSpace(text)
		case !strings.Contains(name, "."):
			ends[name] = batch.ParseMark(l.UID, name, "end", text)
		}
	}
	return ends, submitted, nil
}

// Cancel ends the job, or keeps it from being submitted, also while it is being compiled. A job that has ended already is no error.
func (c *Cluster) Cancel(ctx context.Context, l batch.Layout) error {
	j := batch.Job{Name: l.Name, UID: l.UID}
	_, err := c.node.Run(ctx, prelude+"if cd "+batch.Quote(l.Folder())+` 2>/dev/null; then
	: >cancelled
	# What holds the lock compiles, unless sbatch was called: then it is over in a moment.
	if [ ! -f tried ] && ! flock -n lock true && read -r host pid <starter && [ "$host" = "$(uname -n)" ]; then kill -- "-$pid"; fi
	flock -w 20 lock true || { echo "the job is still being submitted" >&2; exit 75; }
fi
scancel --user="$(id -un)" --name=`+batch.Quote(j.SlurmName()))
	if err != nil {
		return fmt.Errorf("scancel: %w", err)
	}
	return nil
}

// Remove removes the job's folder and all that belongs to it. It does not cancel.
func (c *Cluster) Remove(ctx context.Context, l batch.Layout) error {
	_, err := c.node.Run(ctx, "[ -d "+batch.Quote(l.Base)+" ] || exit 0\nrm -rf -- "+batch.Quote(l.Folder())+" && cd "+batch.Quote(l.Base)+
		" && rm -rf -- jobs/"+batch.Quote(l.Name+"."+l.UID)+".* marks/"+batch.Quote(l.UID)+".*")
	if err != nil {
		return fmt.Errorf("removing the job's folder on the login node: %w", err)
	}
	return nil
}
