package services

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	upstream "k8s.io/kubernetes/pkg/apis/core/v1"
	upstreamvalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// pick returns one of some values, the first most often.
func pick[T any](rng *rand.Rand, values ...T) T {
	if rng.IntN(3) > 0 {
		return values[0]
	}
	return values[rng.IntN(len(values))]
}

// service is a Service of which some fields are odd.
func service(rng *rand.Rand) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pick(rng, "web", "1web", "Web", strings.Repeat("a", 64))}}
	s := &svc.Spec
	s.Type = pick(rng, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName, "", "Other")
	s.Selector = pick(rng, map[string]string{"a": "b"}, nil, map[string]string{"a b": "c"}, map[string]string{"a": "b c"})
	for range pick(rng, 1, 0, 2, 3) {
		s.Ports = append(s.Ports, corev1.ServicePort{Name: pick(rng, "", "http", "https", "Http", "a_b"), Port: pick(rng, int32(80), 81, 443, 0, -1, 70000),
			Protocol: pick(rng, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, "", "ICMP"), NodePort: pick(rng, int32(0), 30080, 30081),
			TargetPort:  pick(rng, intstr.FromInt32(80), intstr.FromString("http"), intstr.FromString(""), intstr.FromInt32(0), intstr.FromInt32(99999), intstr.FromString("Not a port")),
			AppProtocol: pick(rng, nil, new("http"), new("example.com/x"), new("a b"))})
	}
	s.ClusterIP = pick(rng, "", "10.96.0.7", "None", "10.96.0", "010.96.0.1")
	if rng.IntN(5) == 0 {
		s.ClusterIPs = []string{pick(rng, s.ClusterIP, "10.96.0.8")}
	}
	s.SessionAffinity = pick(rng, "", corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone, "Other")
	s.SessionAffinityConfig = pick(rng, nil, &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(pick(rng, int32(10), 0, -1, 86400, 86401))}})
	s.ExternalIPs = pick(rng, nil, []string{"192.0.2.1"}, []string{"127.0.0.1"}, []string{"0.0.0.0"}, []string{"169.254.1.1"}, []string{"nonsense"}, []string{"224.0.0.1"})
	s.ExternalName = pick(rng, "", "example.com", "example.com.", "Not a name")
	s.ExternalTrafficPolicy = pick(rng, "", corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster, "Other")
	s.InternalTrafficPolicy = pick(rng, nil, new(corev1.ServiceInternalTrafficPolicyLocal), new(corev1.ServiceInternalTrafficPolicy("Other")))
	s.HealthCheckNodePort = pick(rng, int32(0), 30090, 70000)
	s.LoadBalancerSourceRanges = pick(rng, nil, []string{"10.0.0.0/8"}, []string{" 10.0.0.0/8 "}, []string{"10.0.0.0"}, []string{"10.0.0.1/8"})
	s.LoadBalancerClass = pick(rng, nil, new("example.com/x"), new("a b"))
	s.AllocateLoadBalancerNodePorts = pick(rng, nil, new(true), new(false))
	s.TrafficDistribution = pick(rng, nil, new("PreferClose"), new("PreferSameZone"), new("PreferSameNode"), new("Other"))
	if rng.IntN(8) == 0 {
		svc.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: pick(rng, "10.0.0.0/8", "10.0.0.0/8, 11.0.0.0/8", "nonsense", "")}
	}
	return svc
}

// The files have what upstream says, for the tests of package validation: that package is built with a newer k8s.io/api than
// the newest k8s.io/kubernetes that the module proxy serves, so the two cannot be in one program.
const folder = "../../../internal/api/validation/testdata/"

var update = flag.Bool("update", false, "write the files anew")

// verdict is an object and the fields for which upstream refuses it.
type verdict[T any] struct {
	Object  T        `json:"object"`
	Refused []string `json:"refused,omitempty"`
}

// refused are the fields of some errors, and in which sense.
func refused(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Field+" "+string(e.Type))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// judge returns the fields for which upstream's validation refuses a Service as it is sent.
func judge(t *testing.T, svc *corev1.Service) []string {
	upstream.SetObjectDefaults_Service(svc)
	if svc.Spec.ClusterIP != "" && len(svc.Spec.ClusterIPs) == 0 { // as its storage does
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
	}
	var internal core.Service
	if err := upstream.Convert_v1_Service_To_core_Service(svc, &internal, nil); err != nil {
		t.Fatal(err)
	}
	return refused(upstreamvalidation.ValidateServiceCreate(&internal))
}

// The files are what upstream says.
func TestVerdicts(t *testing.T) {
	verdicts(t, "services.json", rand.New(rand.NewPCG(1, 2)), service, func(svc *corev1.Service) []string { return judge(t, svc.DeepCopy()) })
}

// verdicts compares a file with what upstream says of objects that make makes.
func verdicts[T any](t *testing.T, file string, rng *rand.Rand, make func(*rand.Rand) T, judge func(T) []string) {
	var want bytes.Buffer
	want.WriteString("[\n")
	const count = 400
	for i := range count {
		obj := make(rng)
		line, err := json.Marshal(verdict[T]{obj, judge(obj)})
		if err != nil {
			t.Fatal(err)
		}
		want.Write(line)
		if i < count-1 {
			want.WriteByte(',')
		}
		want.WriteByte('\n')
	}
	want.WriteString("]\n")
	if *update {
		if err := os.WriteFile(folder+file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(folder + file)
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("%s is not what upstream says: run go test ./services -update in testdata/oracle (%v)", file, err)
	}
}
