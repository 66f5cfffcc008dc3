package validation

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/defaults"
)

// job returns a job with the given spec besides its template, with the API server's defaults.
func job(t testing.TB, spec string) *batchv1.Job {
	t.Helper()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default"}, Spec: *decode[batchv1.JobSpec](t, spec+`
selector: {matchLabels: {a: b}}
template:
  metadata: {labels: {a: b}}
  spec:
    restartPolicy: Never
    initContainers: [{name: before, image: x}]
    containers: [{name: c, image: x}]`)}
	defaults.Job(j)
	return j
}

func TestFailurePolicy(t *testing.T) {
	const at = "spec.podFailurePolicy.rules"
	times := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ") }
	var codes []string
	for i := range 256 {
		codes = append(codes, fmt.Sprint(i+1))
	}
	const ignore = "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"
	for _, x := range []struct {
		name, rules string
		want        []string
	}{
		{"nothing wrong", ignore + `,
{action: Count, onPodConditions: [{type: example.com/Moved, status: Unknown}, {type: B, status: "False"}]},
{action: FailJob, onExitCodes: {containerName: before, operator: In, values: [1, 2, 42]}},
{action: FailJob, onExitCodes: {operator: NotIn, values: [0, 3]}}`, nil},
		{"conditions", `{action: Ignore, onPodConditions: [{type: a b}, {status: Maybe}, {type: C, status: "true"}]}`, []string{
			"Invalid " + at + "[0].onPodConditions[0].type", "Invalid " + at + "[0].onPodConditions[1].type", "Invalid " + at + "[0].onPodConditions[1].type",
			"NotSupported " + at + "[0].onPodConditions[1].status", "NotSupported " + at + "[0].onPodConditions[2].status"}},
		{"codes", "{action: FailJob, onExitCodes: {containerName: other, operator: In, values: [3, 0, 3]}}", []string{
			"Invalid " + at + "[0].onExitCodes.containerName", "Invalid " + at + "[0].onExitCodes.values",
			"Invalid " + at + "[0].onExitCodes.values[1]", "Duplicate " + at + "[0].onExitCodes.values[2]"}},
		{"no codes", "{action: FailJob, onExitCodes: {operator: Near}}", []string{
			"NotSupported " + at + "[0].onExitCodes.operator", "Invalid " + at + "[0].onExitCodes.values"}},
		{"both", "{action: FailJob, onExitCodes: {operator: In, values: [1]}, onPodConditions: [{type: A}]}", []string{"Invalid " + at + "[0]"}},
		{"neither", "{action: FailJob}", []string{"Invalid " + at + "[0]"}},
		{"actions", "{action: Cry, onPodConditions: [{type: A}]}, {onPodConditions: [{type: A}]}, {action: FailIndex, onPodConditions: [{type: A}]}", []string{
			"NotSupported " + at + "[0].action", "Required " + at + "[1].action", "Invalid " + at + "[2].action"}},
		{"as many rules as there may be", times(20, ignore), nil},
		{"too many rules", times(21, ignore), []string{"TooMany " + at}},
		{"too many conditions", "{action: Count, onPodConditions: [" + times(21, "{type: A}") + "]}", []string{"TooMany " + at + "[0].onPodConditions"}},
		{"too many codes", "{action: Count, onExitCodes: {operator: In, values: [" + strings.Join(codes, ", ") + "]}}", []string{"TooMany " + at + "[0].onExitCodes.values"}},
	} {
		t.Run(x.name, func(t *testing.T) { expect(t, Job(job(t, "podFailurePolicy: {rules: ["+x.rules+"]}")), x.want...) })
	}
	expect(t, Job(job(t, "podReplacementPolicy: TerminatingOrFailed")))
	expect(t, Job(job(t, "podReplacementPolicy: TerminatingOrFailed\npodFailurePolicy: {rules: ["+ignore+"]}")), "NotSupported spec.podReplacementPolicy")
}

func TestSuccessPolicy(t *testing.T) {
	const at = "spec.successPolicy.rules"
	for _, x := range []struct {
		name, rules string
		want        []string
	}{
		{"nothing wrong", `{succeededIndexes: "0,2-3,9"}, {succeededCount: 10}, {succeededIndexes: "1-4", succeededCount: 4}, {succeededCount: 0}, {succeededIndexes: ""}`, nil},
		{"no rules", "", []string{"Required " + at}},
		{"an empty one", "{}", []string{"Required " + at + "[0]"}},
		{"as many as there may be", strings.Repeat("{succeededCount: 1}, ", 20), nil},
		{"too many", strings.Repeat("{succeededCount: 1}, ", 21), []string{"TooMany " + at}},
		{"counts", `{succeededCount: -1}, {succeededCount: 11}, {succeededIndexes: "0-1", succeededCount: 3}`, []string{
			"Invalid " + at + "[0].succeededCount", "Invalid " + at + "[1].succeededCount", "Invalid " + at + "[2].succeededCount"}},
		{"too long", `{succeededIndexes: "` + strings.Repeat("0", 1<<16+1) + `"}`, []string{"TooLong " + at + "[0].succeededIndexes"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			expect(t, Job(job(t, "completionMode: Indexed\ncompletions: 10\nsuccessPolicy: {rules: ["+x.rules+"]}")), x.want...)
		})
	}
	for _, list := range []string{"x", "1,", "0-", "-1", "1-2-3", "3,2", "2,2", "4-3", "3-3", "10", "0-10", "0-4,4", "99999999999"} {
		expect(t, Job(job(t, "completionMode: Indexed\ncompletions: 10\nsuccessPolicy: {rules: [{succeededIndexes: \""+list+"\"}]}")), "Invalid "+at+"[0].succeededIndexes")
	}
	const some = "\nsuccessPolicy: {rules: [{succeededCount: 1}]}"
	expect(t, Job(job(t, "completions: 10"+some)), "Invalid spec.successPolicy")
	expect(t, Job(job(t, "completionMode: Indexed\nparallelism: 1"+some)), "Required spec.completions")
	old := job(t, "completionMode: Indexed\ncompletions: 10"+some)
	now := old.DeepCopy()
	now.Spec.SuccessPolicy.Rules[0].SucceededCount = new(int32(2))
	expect(t, JobUpdate(now, old), "Invalid spec.successPolicy")
}
