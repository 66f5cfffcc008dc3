package validation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options of sbatch that a manifest may not have, and why: those that minik8s sets itself, and those with which no job is
// submitted, or not there where it is looked for.
var sbatchKept = map[string]string{
	"array": "set spec.array", "chdir": "the job's folder is its own", "clusters": "set spec.cluster", "comment": "it has the object's UID",
	"dependency": "set spec.dependsOn", "error": "set spec.errorFile", "export": "set spec.env", "export-file": "set spec.env",
	"gid": "the job is the login's own", "help": "with it nothing is submitted", "input": "put what is read into the sources",
	"job-name": "it has the object's UID", "kill-on-invalid-dep": "minik8s sets it", "open-mode": "minik8s sets it",
	"output": "set spec.outputFile", "parsable": "minik8s sets it", "quiet": "what sbatch says is read",
	"test-only": "with it nothing is submitted", "uid": "the job is the login's own",
	"usage": "with it nothing is submitted", "version": "with it nothing is submitted", "wait": "minik8s waits itself",
	"workdir": "the job's folder is its own", "wrap": "set spec.runScripts",
}

// Short options: those of the ones above; those that have a value after them; those that may have another letter after them.
var sbatchShort = map[rune]string{'a': "array", 'D': "chdir", 'M': "clusters", 'd': "dependency", 'e': "error", 'h': "help", 'i': "input",
	'J': "job-name", 'o': "output", 'Q': "quiet", 'V': "version", 'W': "wait"}

const sbatchValued, sbatchFlags = "AbBcCFGLmnNpqStwx", "HkOsv"

var sbatchLong = regexp.MustCompile(`^--([a-z][a-z0-9-]*)(=.*)?$`)

// sbatchOption checks one further option.
func sbatchOption(path *field.Path, option string) field.ErrorList {
	refuse := func(format string, args ...any) field.ErrorList {
		return field.ErrorList{field.Invalid(path, option, fmt.Sprintf(format, args...))}
	}
	switch m := sbatchLong.FindStringSubmatch(option); {
	case strings.ContainsFunc(option, unicode.IsControl) || !utf8.ValidString(option):
		return refuse("must have no control characters")
	case m != nil:
		if name := keptOption(m[1]); name != "" {
			return refuse("--%s cannot be among the further options: %s", name, sbatchKept[name])
		}
		return nil
	case len(option) < 2 || option[0] != '-' || option[1] == '-':
		return refuse(`expected an option of sbatch and its value in one, as in "--constraint=a100" or "-Ca100"`)
	}
	for _, letter := range option[1:] {
		name, kept := sbatchShort[letter]
		switch {
		case kept:
			return refuse("-%c, --%s, cannot be among the further options: %s", letter, name, sbatchKept[name])
		case strings.ContainsRune(sbatchValued, letter): // the rest is its value
			return nil
		case !strings.ContainsRune(sbatchFlags, letter):
			return refuse("-%c is not known here: write the long name of the option", letter)
		}
	}
	return nil
}

// keptOption is the option of sbatchKept that sbatch takes a long name for: it has that name, or begins with it.
func keptOption(given string) string {
	if _, ok := sbatchKept[given]; ok {
		return given
	}
	for _, name := range slices.Sorted(maps.Keys(sbatchKept)) {
		if strings.HasPrefix(name, given) {
			return name
		}
	}
	return ""
}

// maxTasks is how many tasks an array may have, and maxIndex the largest number of one: Slurm's own limits.
const maxTasks, maxIndex = 100_000, 4_000_000

// slurmArray checks the numbers of an array's tasks.
func slurmArray(path *field.Path, array string) field.ErrorList {
	refuse := func(detail string) field.ErrorList { return field.ErrorList{field.Invalid(path, array, detail)} }
	number := func(s string) int {
		if n, err := strconv.Atoi(s); err == nil && s[0] >= '0' && s[0] <= '9' {
			return n
		}
		return -1
	}
	numbers, atOnce, limited := strings.Cut(array, "%")
	if limited && number(atOnce) < 1 {
		return refuse("after % comes how many tasks run at a time, as in \"0-99%4\"")
	}
	tasks := 0
	for part := range strings.SplitSeq(numbers, ",") {
		span, step, stepped := strings.Cut(part, ":")
		first, last, isSpan := strings.Cut(span, "-")
		if !isSpan {
			last = first
		}
		if !stepped {
			step = "1"
		}
		from, to, by := number(first), number(last), number(step)
		if from < 0 || to < from || by < 1 || stepped && !isSpan {
			return refuse(`expected numbers and ranges, as in "0-9", "1,3,5", "0-10:2" or "0-99%4"`)
		}
		if to > maxIndex {
			return refuse(fmt.Sprintf("a task's number is at most %d", maxIndex))
		}
		if tasks += (to-from)/by + 1; tasks > maxTasks {
			return refuse(fmt.Sprintf("an array has at most %d tasks", maxTasks))
		}
	}
	return nil
}

// mailTypes are the words of sbatch --mail-type.
var mailTypes = []string{"NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90",
	"TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS"}

// mailAddress is an address, or a user of the cluster. It is less than mail allows: a centre's own scripts send the mail.
var mailAddress = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._%+-]*(@[A-Za-z0-9][A-Za-z0-9.-]*)?$`)

// gpuType is one word in --gres=gpu:TYPE:N.
var gpuType = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

// slurmWord checks a name that Slurm or the module system knows.
func slurmWord(path *field.Path, value string) field.ErrorList {
	switch {
	case value == "":
		return nil
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		return field.ErrorList{field.Invalid(path, value, "must have no spaces and no control characters")}
	case value[0] == '-':
		return field.ErrorList{field.Invalid(path, value, "must not begin with a dash")}
	}
	return nil
}

func slurmWords(path *field.Path, values []string) field.ErrorList {
	var errs field.ErrorList
	for i, v := range values {
		if v == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
		}
		errs = append(errs, slurmWord(path.Index(i), v)...)
	}
	return errs
}

// shellLines checks lines of shell. They are commands: anything may be in them but what no file of text can have.
func shellLines(path *field.Path, lines []string) field.ErrorList {
	var errs field.ErrorList
	for i, l := range lines {
		if strings.ContainsRune(l, 0) {
			errs = append(errs, field.Invalid(path.Index(i), l, "must not contain NUL"))
		}
	}
	return errs
}
