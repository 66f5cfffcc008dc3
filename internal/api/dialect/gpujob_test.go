package dialect

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"minik8s/internal/api"
)

// A manifest of a Job is of one kind or the other by what it has; with neither, both are named.
func TestIdentifyJobs(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"kind":"Job","apiVersion":"v1","spec":{"cuFilePath":"a.cu"}}`:  "minik8s.io/v1 GpuJob",
		`{"kind":"job","spec":{"cuFilePath":"a.cu"}}`:                    "minik8s.io/v1 GpuJob",
		`{"kind":"Job","apiVersion":"v1","spec":{"template":{}}}`:        "batch/v1 Job",
		`{"kind":"Job","apiVersion":"batch/v1","spec":{}}`:               "batch/v1 Job",
		`{"kind":"GpuJob","apiVersion":"v1","spec":{}}`:                  "minik8s.io/v1 GpuJob",
		`{"kind":"Job","apiVersion":"v1","spec":{"resultFileName":"a"}}`: "neither template, as a batch Job, nor cuFilePath, as a GPU job",
		`{"kind":"Job"}`: "neither template, as a batch Job, nor cuFilePath, as a GPU job",
		`{"kind":"Job","spec":{"cuFilePath":"a.cu","template":{"spec":1}}}`: "it has both template",
	} {
		version, kind, err := Identify(parseJSON(t, []byte(manifest)))
		got := version + " " + kind
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", manifest, got, want)
		}
	}
}

// Whatever a source file and its program are called, the shell sees the names and nothing else.
func TestGpuJobNamesAreWords(t *testing.T) {
	for _, name := range []string{"sum", "a b", "$(touch x)", "it's; rm -rf ~", "-x", "`id`", "a\nb", "", "*"} {
		doc := map[string]any{"kind": "Job", "spec": map[string]any{"cuFilePath": `C:\x/` + name + ".cu", "resultFileName": name}}
		if _, err := For(api.GpuJobs)(doc); err != nil {
			t.Fatal(err)
		}
		spec := doc["spec"].(map[string]any)
		words := func(line string) []string {
			t.Helper()
			out, err := exec.Command("sh", "-c", `for w in `+line+`; do printf '%s\0' "$w"; done`).Output()
			if err != nil {
				t.Fatal(line, err)
			}
			return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		}
		file, program := name+".cu", name
		if name == "-x" {
			file, program = "./-x.cu", "./-x"
		}
		compile := fmt.Sprint(spec["compileScripts"].([]any)[0])
		if got := words(compile); !slices.Equal(got, []string{"nvcc", file, "-o", program, "-lcublas"}) {
			t.Errorf("%q: %q", name, got)
		}
		if got := words(fmt.Sprint(spec["runScripts"].([]any)[2])); !slices.Equal(got, []string{"./" + name}) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// What the second seed system has as optional.
func TestSecondGpuJob(t *testing.T) {
	doc := parse(t, []byte(`
kind: Job
metadata: {name: a}
spec:
  cuFilePath: /home/me/sum.cu
  args: {gpuResources: "2", mail: {type: end, userName: me@example.com}}`))
	if _, err := For(api.GpuJobs)(doc); err != nil {
		t.Fatal(err)
	}
	spec := doc["spec"].(map[string]any)
	if spec["outputFile"] != "sum.out" || fmt.Sprint(spec["gpusPerNode"], spec["nodes"], spec["mail"]) != "2 1 map[to:me@example.com types:[END]]" {
		t.Errorf("%v", doc)
	}
}
