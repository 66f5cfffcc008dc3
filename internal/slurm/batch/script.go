package batch

import (
	"strconv"
	"strings"
)

// comment is a text that stays within a line of comment.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// leave defines the function that leaves a mark: a small file that is there whole or not at all.
const leave = `# leave FILE TEXT: a small file that is there whole or not at all
leave() { printf '%s\n' "$2" >"$1.new.$$" && mv -f "$1.new.$$" "$1"; }
`

// claim defines the function by which one of a job's submissions becomes the job, should Slurm have taken two: the first to link
// the file does.
const claim = `# claim NUMBER: makes it the job's, unless another one is
claim() { printf '%s\n' "$1" >jobid.new.$$ && { ln jobid.new.$$ jobid 2>/dev/null; rm -f jobid.new.$$; [ -s jobid ]; }; }
`

// Scripts are a job's, by the names of their files in the job's folder.
func (j *Job) Scripts() (map[string]string, error) {
	args, err := j.Args()
	if err != nil {
		return nil, err
	}
	out := map[string]string{"batch.sh": j.batch(args), "run.sh": j.run(), "start.sh": j.start(args)}
	if len(j.Compile) > 0 {
		out["compile.sh"] = j.lines("what compiles "+j.Title, j.Compile)
	}
	return out, nil
}

// Text is all that is particular to the job, for people: how it is submitted and what it runs.
func (j *Job) Text() (string, error) {
	scripts, err := j.Scripts()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range []string{"compile.sh", "batch.sh", "run.sh"} {
		if s := scripts[name]; s != "" {
			b.WriteString("### " + name + "\n" + s + "\n")
		}
	}
	return b.String(), nil
}

// batch is the script that Slurm runs: it runs run.sh and leaves word of how it went.
func (j *Job) batch(args []string) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n: # Slurm reads no directives below a command\n")
	b.WriteString("# The job of GpuJob " + comment(j.Title) + ". It is submitted by\n#   sbatch " + comment(QuoteAll(args)) + " batch.sh\n")
	b.WriteString("umask 077\njob=" + Quote(j.Layout.Folder()) + "\nmarks=" + Quote(j.Layout.Marks()) + "\nuid=" + Quote(j.UID) + "\n")
	b.WriteString(`task=${SLURM_ARRAY_TASK_ID:-0}
[ -z "$SLURM_ARRAY_TASK_ID" ] || uid=$uid.$task
number=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}
` + leave + claim + `cd "$job" && claim "$number" && [ "$(cat jobid)" = "$number" ] || { echo "job $number: another submission of it runs"; exit 1; }
about="job=$number nodes=$SLURM_JOB_NODELIST restarts=${SLURM_RESTART_COUNT:-0}"
rm -f "$marks/$uid.end" "$job/ends/$task"
leave "$marks/$uid.run" "$about start=$(date +%s)"
start=$(date +%s)
# This shell outlives Slurm's signals, to say how the program ended, and passes them on: some are for a job's first process alone. After
# TERM the job's end is Slurm's to name, whatever the exit code.
signalled= program=
pass() { [ -z "$program" ] || kill -s $1 $program 2>/dev/null; }
trap 'signalled=1; pass TERM' TERM
trap 'signalled=1' INT
trap 'pass USR1' USR1
trap 'pass USR2' USR2
`)
	if j.InJob && len(j.Compile) > 0 {
		b.WriteString("if ! bash -l \"$job/compile.sh\" >" + Quote(j.compileOutput()) + " 2>&1; then\n\tfailed=compile code=1\nelse\n")
	}
	b.WriteString(`bash -l "$job/run.sh" &
program=$!
wait $program; code=$?
while kill -0 $program 2>/dev/null; do wait $program; code=$?; done
`)
	if j.InJob && len(j.Compile) > 0 {
		b.WriteString("fi\n")
	}
	b.WriteString(`about="$about start=$start end=$(date +%s) exit=$code failed=${failed:-} signalled=$signalled"
leave "$job/ends/$task" "$about"
leave "$marks/$uid.end" "$about"
exit $code
`)
	return b.String()
}

// lane is one of eight, by chance: the one that is waited for if all are taken.
func (j *Job) lane() int {
	n := 0
	for _, c := range j.UID {
		n += int(c)
	}
	return n % 8
}

func (j *Job) compileOutput() string { return j.Layout.Files() + "/" + j.CompileOutput }

// run is what the job runs.
func (j *Job) run() string { return j.lines("what "+j.Title+" runs", j.Run) }

// lines is a script of lines, after what comes before all of them; the first that fails ends it.
func (j *Job) lines(title string, lines []string) string {
	var b strings.Builder
	b.WriteString("# " + comment(title) + "\n")
	for _, l := range j.Setup {
		b.WriteString(l + "\n")
	}
	b.WriteString("set -e\n")
	for _, v := range j.Env {
		b.WriteString("export " + v.Name + "=" + Quote(v.Value) + "\n")
	}
	b.WriteString("cd " + Quote(j.Layout.Files()) + "\n")
	for _, m := range j.Modules {
		b.WriteString("module load " + Quote(m) + "\n")
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// Exit codes of start.sh.
const (
	StartBusy   = 75 // another start.sh of the job is at work
	StartFailed = 74 // nothing was submitted, and trying again may help: its output says why
)

// start is the script that compiles and submits, once. It runs on the login node, on its own, and its results are marks. It
// may be run again whenever it is not known how far it came:
//
//   - The lock is held by sbatch, too, so nobody looks for a job while it is being submitted.
//   - "tried" is there before sbatch is called. If it is, and no number is recorded, the job may have been submitted: then it
//     is looked for. It has run (and recorded its number), or it is in Slurm's queue or accounting, or it was never accepted.
//   - Should Slurm take a job after all whose sbatch timed out, one of the two records its number, and the other ends.
func (j *Job) start(args []string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# compiles and submits the job of " + comment(j.Title) + ", once\numask 077\n")
	b.WriteString("job=" + Quote(j.Layout.Folder()) + "\nmarks=" + Quote(j.Layout.Marks()) + "\nuid=" + Quote(j.UID) + "\nname=" + Quote(j.SlurmName()) + "\n" + leave + claim)
	b.WriteString(`cd "$job" || exit 74
exec 9>lock || exit 74
flock -n 9 || exit 75
submitted() { leave "$marks/$uid.submitted" "job=$1"; exit; }
printf '%s %s\n' "$(uname -n)" $$ >starter
[ ! -s jobid ] || submitted "$(cat jobid)"
`)
	if len(j.Compile) > 0 && !j.InJob {
		b.WriteString(`if [ ! -f compiled ]; then
	# The login node is for everybody: eight of our jobs compile at a time.
	lane=` + strconv.Itoa(j.lane()) + ` n=0
	while :; do
		exec 8>"$marks/../compiling.$lane" || exit 74
		flock -n 8 && break
		n=$((n+1)) lane=$(((lane+1)%8))
		[ $n -lt 8 ] || { flock 8 && break; }
	done
	bash -l compile.sh >` + Quote(j.compileOutput()) + ` 2>&1 8>&- 9>&- </dev/null
	code=$?
	exec 8>&-
	if [ $code != 0 ]; then leave "$marks/$uid.uncompiled" "exit=$code"; exit 0; fi
	: >compiled || exit 74
fi
`)
	}
	b.WriteString(`id=
if [ -f tried ]; then
	found=$(squeue --noheader --all --user="$(id -un)" --states=all --name="$name" --format=%F) || exit 74
	[ -n "$found" ] || found=$(sacct --noheader --allocations --parsable2 --name="$name" --starttime=now-7days --format=JobID 2>/dev/null)
	id=$(printf '%s\n' "$found" | sed -n '1s/^\([0-9][0-9]*\).*/\1/p')
fi
if [ -z "$id" ]; then
	[ ! -f cancelled ] || exit 0
	: >tried || exit 74
	answer=$(sbatch ` + QuoteAll(args) + ` batch.sh 2>refusal </dev/null)
	code=$?
	id=$(printf '%s\n' "$answer" | sed -n '1s/^\([0-9][0-9]*\).*/\1/p')
	if [ $code != 0 ] || [ -z "$id" ]; then
		cat refusal
		case $(cat refusal) in
		# Not known whether it was taken, or not now: it is tried again.
		*'Socket timed out'*|*'nable to contact slurm controller'*|*'onnection refused'*|*'emporarily un'*|*'backup controller'*|*'ommunication connection failure'*|*'Zero Bytes were transmitted'*|*'Unexpected message received'*|*'uthentication'*|*[Mm]unge*|*'I/O error writing script'*|'') exit 74;;
		# As many jobs as one may have at a time, or all of an account or a QOS together.
		*MaxSubmitJob*|*GrpSubmitJob*) rm -f tried; exit 74;;
		# The job that comes first has ended meanwhile: what that means is not the script's to say.
		*'ob dependency problem'*|*'nvalid dependency'*) rm -f tried; exit 74;;
		esac
		leave "$marks/$uid.refused" "$(cat refusal)"
		exit 0
	fi
fi
claim "$id" || exit 74
first=$(cat jobid)
[ "$first" = "$id" ] || scancel "$id"
submitted "$first"
`)
	return b.String()
}
