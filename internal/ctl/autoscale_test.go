package ctl

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/exit"
)

const hpaPath = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/"

// The seed system's command, word for word: it prints what it configures, and then ok.
func TestAutoscaleOfTheSeed(t *testing.T) {
	f := newFake(t, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rs"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web"}})
	got := f.ctl("", "autoscale", "hpa", "--target=rs", "--min=1", "--max=4", "-c", "25", "-i", "10")
	want := "Config hpa: default/hpa\nTarget: ReplicaSet default/rs\nMetrics: CPUUtilizationPercentage=25\nReplicas: 1 to 4\nInterval: 10s\nok\n"
	if got.code != 0 || got.out != want {
		t.Fatalf("%+v", got)
	}
	h := f.get(hpaPath + "hpa").(*autoscalingv2.HorizontalPodAutoscaler)
	rules := h.Spec.Behavior.ScaleDown
	if *h.Spec.Metrics[0].Resource.Target.AverageUtilization != 25 || h.Spec.ScaleTargetRef.APIVersion != "apps/v1" || h.Spec.MaxReplicas != 4 ||
		rules.Policies[0].PeriodSeconds != 10 || rules.Policies[0].Value != 1 || *rules.StabilizationWindowSeconds != 0 ||
		h.Annotations[api.UtilizationBasisAnnotation] != api.BasisCapacity || h.Annotations[api.SyncPeriodAnnotation] != "10s" {
		t.Errorf("%+v", h)
	}
	for _, x := range []struct {
		args, want string
		code       int
	}{
		{"autoscale b -t other/web -m 60", "Target: Deployment other/web", 0},
		{"autoscale c -t rs -c 0.5", "CPUUtilizationPercentage=0.5", 0},
		{"autoscale hpa -t rs -c 25", "horizontalpodautoscaler.autoscaling/hpa exists already", exit.Conflict},
		{"autoscale d -t absent -c 25", `--target: there is no replica set, deployment or replication controller "absent" in the namespace default`, exit.NotFound},
		{"autoscale d -t rs --min 5 --max 4 -c 25", "--min: it is 5, more than --max, which is 4", exit.Usage},
		{"autoscale d -t rs", "how busy are the pods to be? -c PERCENT", exit.Usage},
		{"autoscale d -t rs -c many", `-c: expected a number of percent above 0, got "many"`, exit.Usage},
		{"autoscale d -t rs -c 25 -i 0", "spec.scaleInterval: expected a whole number of seconds, at least 1", exit.Usage},
		{"autoscale -t rs -c 25", "give one name for the autoscaler", exit.Usage},
	} {
		if got := f.ctl("", strings.Fields(x.args)...); got.code != x.code || !strings.Contains(got.out+got.text, x.want) {
			t.Errorf("%s: %+v", x.args, got)
		}
	}
	if b := f.get("/apis/autoscaling/v2/namespaces/other/horizontalpodautoscalers/b"); b == nil {
		t.Error("the autoscaler is not beside its target")
	}
}

func TestAutoscaleAsKubectl(t *testing.T) {
	f := newFake(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, pod("default", "p"))
	for _, x := range []struct {
		args, want string
		code       int
	}{
		{"autoscale deployment web --min=2 --max=5 --cpu-percent=80", "horizontalpodautoscaler.autoscaling/web autoscaled", 0},
		{"autoscale deployment/web --max=5 --cpu=500m --memory=70% --name=two", "horizontalpodautoscaler.autoscaling/two autoscaled", 0},
		{"autoscale deploy web --max=5 --cpu=500 --memory=200 --name=three", "autoscaled", 0},
		{"autoscale deployment web --max=5", "web exists already", exit.Conflict},
		{"autoscale deployment web", "--max: it is 0, and at least 1 pod is needed", exit.Usage},
		{"autoscale deployment web --min 3 --max 2", "--min: it is 3, more than --max, which is 2", exit.Usage},
		{"autoscale deployment web --max 2 --cpu much", `--cpu: "much" is neither a percentage`, exit.Usage},
		{"autoscale pod p --max 2", "autoscale is for deployments and replicasets", exit.Usage},
		{"autoscale deployment absent --max 2", "not found", exit.NotFound},
	} {
		if got := f.ctl("", strings.Fields(x.args)...); got.code != x.code || !strings.Contains(got.out+got.text, x.want) {
			t.Errorf("%s: %+v", x.args, got)
		}
	}
	two, three := f.get(hpaPath+"two").(*autoscalingv2.HorizontalPodAutoscaler), f.get(hpaPath+"three").(*autoscalingv2.HorizontalPodAutoscaler)
	if m := two.Spec.Metrics; m[0].Resource.Target.AverageValue.String() != "500m" || *m[1].Resource.Target.AverageUtilization != 70 {
		t.Errorf("%+v", m)
	}
	if m := three.Spec.Metrics; m[0].Resource.Target.AverageValue.String() != "500m" || m[1].Resource.Target.AverageValue.String() != "200Mi" {
		t.Errorf("%+v", m)
	}
}

// why says the sum with its numbers, describe all there is, and get shows what is wanted when it watches.
func TestAutoscalerIsExplained(t *testing.T) {
	at := func(reason, message string, is corev1.ConditionStatus, of autoscalingv2.HorizontalPodAutoscalerConditionType) autoscalingv2.HorizontalPodAutoscalerCondition {
		return autoscalingv2.HorizontalPodAutoscalerCondition{Type: of, Status: is, Reason: reason, Message: message}
	}
	hpa := func(name, sum string, conditions ...autoscalingv2.HorizontalPodAutoscalerCondition) *autoscalingv2.HorizontalPodAutoscaler {
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{api.DecisionAnnotation: sum}}}
		h.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 4, Metrics: []autoscalingv2.MetricSpec{api.CPUMetric(50)},
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
		h.Status = autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 4, Conditions: conditions}
		return h
	}
	const able, active = autoscalingv2.AbleToScale, autoscalingv2.ScalingActive
	f := newFake(t,
		hpa("busy", "cpu:\n  2 pods use 412m of 200m requested: 206%; wanted 50%: 206/50 = 4.12\nso 2 becomes 4",
			at("SucceededRescale", "told", corev1.ConditionTrue, able), at("TooManyReplicas", "the desired replica count is more than the maximum replica count", corev1.ConditionTrue, autoscalingv2.ScalingLimited)),
		hpa("lost", "", at("FailedGetScale", `deployments.apps "web" not found`, corev1.ConditionFalse, able)),
		hpa("blind", "", at("SucceededGetScale", "", corev1.ConditionTrue, able), at("FailedGetResourceMetric", "missing request for cpu in container c of Pod p", corev1.ConditionFalse, active)),
		hpa("unserved", "", at("SucceededGetScale", "", corev1.ConditionTrue, able), at("FailedGetPodsMetric",
			"unable to get metric work: unable to fetch metrics from custom metrics API: the server could not find the requested resource", corev1.ConditionFalse, active)),
		hpa("unnamed", "", at("SucceededGetScale", "", corev1.ConditionTrue, able), at("FailedGetExternalMetric",
			"unable to fetch metrics from external metrics API: the server could not find the metric orders for orders.external.metrics.k8s.io", corev1.ConditionFalse, active)),
		hpa("silent", "", at("SucceededGetScale", "", corev1.ConditionTrue, able), at("FailedGetObjectMetric",
			"unable to fetch metrics from custom metrics API: Prometheus at http://p:9090 does not answer: connection refused", corev1.ConditionFalse, active)),
		hpa("new", ""))
	for name, wants := range map[string][]string{
		"busy":     {"scaled deployment/web from 2 to 4", "206/50 = 4.12", "so 2 becomes 4", "TooManyReplicas"},
		"lost":     {"cannot scale deployment/web", `deployments.apps "web" not found`, "minik8sd ctl get deployment web"},
		"blind":    {"does not know how many pods deployment/web needs: it has 2", "missing request for cpu", "give each of deployment web a resources.requests"},
		"unserved": {"FailedGetPodsMetric", "nobody serves such metrics: give each master --prometheus"},
		"unnamed":  {"kubectl get --raw /apis/external.metrics.k8s.io/v1beta1\n"},
		"silent":   {"connection refused", "see that this Prometheus runs"},
		"new":      {"has not been looked at yet"},
	} {
		got := f.ctl("", "why", "hpa", name)
		for _, want := range wants {
			if !strings.Contains(got.out, want) {
				t.Errorf("why %s does not say %q:\n%s", name, want, got.out)
			}
		}
	}
	got := f.ctl("", "describe", "hpa", "busy").out
	for _, want := range []string{"Deployment/web", "cpu: <unknown>/50%", "2 current, 4 desired; at least 1, at most 4", "TooManyReplicas", "206/50 = 4.12"} {
		if !strings.Contains(got, want) {
			t.Errorf("describe does not show %q:\n%s", want, got)
		}
	}
}
