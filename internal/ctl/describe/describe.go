package describe

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/session"
)

// Show writes everything about an object, and the events about it.
func Show(ctx context.Context, s *session.Session, obj api.Object) error {
	var out sheet
	writeMeta(s, &out, obj)
	var err error
	switch o := obj.(type) {
	case *corev1.Pod:
		writePod(s, &out, o)
	case *corev1.Node:
		err = writeNode(ctx, s, &out, o)
	case *corev1.Secret:
		writeSecret(&out, o)
	case *corev1.Service:
		err = writeService(ctx, s, &out, o)
	case *minik8s.DNS:
		writeDNS(&out, o)
	case *minik8s.GpuJob:
		err = writeGpuJob(ctx, s, &out, o)
	case *minik8s.SlurmCluster:
		writeSlurmCluster(&out, o)
	case *networkingv1.Ingress:
		writeIngress(&out, o)
	case *networkingv1.IngressClass:
		writeIngressClass(&out, o)
	case *networkingv1.NetworkPolicy:
		writeNetworkPolicy(&out, o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		writeAutoscaler(s, &out, o)
	case *corev1.Endpoints:
		writeEndpoints(&out, o)
	case *discoveryv1.EndpointSlice:
		writeEndpointSlice(&out, o)
	case *apiregistrationv1.APIService:
		writeAPIService(s, &out, o)
	default:
		err = writeRest(&out, obj)
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Out, out.String()); err != nil {
		return err
	}
	if api.KindOf(obj) != api.Events {
		showEvents(ctx, s, obj)
	}
	return nil
}

func writeMeta(s *session.Session, out *sheet, obj api.Object) {
	out.field("Name", obj.GetName())
	if obj.GetNamespace() != "" {
		out.field("Namespace", obj.GetNamespace())
	}
	out.pairs("Labels", obj.GetLabels())
	notes := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		// The one repeats the whole manifest, including the values of a Secret, the other has lines and a place of its own.
		if k != corev1.LastAppliedConfigAnnotation && k != api.DecisionAnnotation {
			notes[k] = brief.Clip(v, 200)
		}
	}
	out.pairs("Annotations", notes)
	out.field("Created", s.When(obj.GetCreationTimestamp()))
	if at := obj.GetDeletionTimestamp(); at != nil {
		out.field("Terminating", "gone by "+at.UTC().Format(time.RFC3339)+"; "+brief.Leaving(obj))
	}
	if owner := metav1.GetControllerOf(obj); owner != nil {
		out.field("Controlled By", owner.Kind+"/"+owner.Name)
	}
	if f := obj.GetFinalizers(); len(f) > 0 {
		out.field("Finalizers", strings.Join(f, ", "))
	}
}

// writeSecret shows only the lengths of the values.
func writeSecret(out *sheet, secret *corev1.Secret) {
	out.field("Type", string(secret.Type))
	out.line("Data:")
	var keys []string
	for k := range secret.Data {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		out.line("  %s:  %d bytes", k, len(secret.Data[k]))
	}
	if len(keys) == 0 {
		out.line("  <none>")
	}
}

// writeRest shows an object without its metadata, as YAML.
func writeRest(out *sheet, obj api.Object) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(doc, key)
	}
	hide(doc)
	var keys []string
	for k := range doc {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		title := strings.ToUpper(k[:1]) + k[1:]
		switch v := doc[k].(type) {
		case map[string]any, []any:
			text, err := yaml.Marshal(v)
			if err != nil {
				return err
			}
			out.line("%s:", title)
			out.block("  ", string(text))
		default:
			out.field(title, fmt.Sprint(v))
		}
	}
	return nil
}

// hide replaces passwords and tokens, which the manifests of the seed systems' GPU jobs contain.
func hide(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if word := strings.ToLower(k); word == "password" || word == "token" {
				if text, ok := inner.(string); ok {
					v[k] = fmt.Sprintf("<%d bytes>", len(text))
					continue
				}
			}
			hide(inner)
		}
	case []any:
		for _, inner := range v {
			hide(inner)
		}
	}
}
