package table

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"minik8s/internal/api"
)

func TestAutoscalerRows(t *testing.T) {
	const head = `metadata: {name: web, namespace: default, uid: u, creationTimestamp: "2025-05-01T11:55:00Z"}
spec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: web}, metrics: `
	const cpu = `{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`
	const memory = `{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}}`
	const queue = `{type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: "5"}}}`
	const hits = `{type: Object, object: {metric: {name: h}, target: {type: Value, value: "7"}}}`
	const each = `{type: Pods, pods: {metric: {name: p}, target: {type: AverageValue, averageValue: 200m}}}`
	for _, x := range []struct {
		l                    Layout
		metrics, status, row string
	}{
		{Default, cpu, `{}`, "web | Deployment/web | cpu: <unknown>/50% | 1 | 5 | 0 | 5m | 0 | <none> | <none>"},
		{Default, cpu + ", " + memory, `{currentReplicas: 2, desiredReplicas: 4, lastScaleTime: "2025-05-01T11:59:00Z", currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 80}}},
			{type: Resource, resource: {name: memory, current: {averageValue: 64Mi}}}], conditions: [{type: ScalingLimited, status: "True", reason: TooManyReplicas}]}`,
			"web | Deployment/web | cpu: 80%/50%, memory: 64Mi/100Mi | 1 | 5 | 2 | 5m | 4 | TooManyReplicas | 60s"},
		{Default, queue + ", " + hits, `{currentMetrics: [{type: External, external: {current: {averageValue: "3"}}}, {type: Object, object: {current: {value: "9"}}}]}`,
			"web | Deployment/web | 3/5 (avg), 9/7 | 1 | 5 | 0 | 5m | 0 | <none> | <none>"},
		{Default, each + ", " + cpu + ", " + queue, `{}`, "web | Deployment/web | <unknown>/200m, cpu: <unknown>/50% + 1 more... | 1 | 5 | 0 | 5m | 0 | <none> | <none>"},
		{Default, `{type: Odd}`, `{conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale}]}`,
			"web | Deployment/web | <unknown type> | 1 | 5 | 0 | 5m | 0 | FailedGetScale | <none>"},
		{Extended, cpu, `{currentReplicas: 2, desiredReplicas: 3, conditions: [{type: AbleToScale, status: "True"}]}`, "default/web | u | Scaling | 1 | 5 | 2/3 | Cpu | 50% |  | "},
		{Extended, memory, `{conditions: [{type: ScalingActive, status: "False", message: why}]}`, "default/web | u | Error | 1 | 5 | 0/0 | Memory | 100Mi |  | why"},
		{Compact, cpu, `{currentReplicas: 2}`, "web | u | Deployment/web | 1 | 5 | 2"},
	} {
		h := decode[autoscalingv2.HorizontalPodAutoscaler](t, head+"["+x.metrics+"]}\nstatus: "+x.status)
		if got := join(Row(api.HorizontalPodAutoscalers, h, x.l, now)); got != x.row {
			t.Errorf("got  %s\nwant %s", got, x.row)
		}
	}
}
