package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
)

// Func makes a Function of what the second seed system's scripts upload: a Func, whose files are in base64, and whose apiVersion is how its
// instances are used (v1, v2).
func Func(body []byte) ([]byte, error) {
	var in struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace string
		}
		Spec struct {
			Name             string
			PreRun, Function string
			Left, Right      string
			ServiceAddress   string
			InitInstanceNum  int32
			MaxInstanceNum   int32
			MinInstanceNum   int32
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("expected a Func in JSON, as the scripts upload it: %w", err)
	}
	if in.Kind != "Func" {
		return nil, fmt.Errorf("kind: expected Func, got %q", in.Kind)
	}
	out := minik8s.Function{}
	out.APIVersion, out.Kind = api.Functions.APIVersion(), api.Functions.Kind
	if out.Name = in.Spec.Name; out.Name == "" {
		out.Name = in.Metadata.Name
	}
	out.Namespace = in.Metadata.Namespace
	switch in.APIVersion {
	case "": // as the scripts' default
		out.Spec.Version = minik8s.FunctionV1
	default:
		out.Spec.Version = in.APIVersion
	}
	for _, f := range []struct {
		path, from string
		to         *string
	}{{"spec.preRun", in.Spec.PreRun, &out.Spec.PreRun}, {"spec.function", in.Spec.Function, &out.Spec.Source}} {
		text, err := base64.StdEncoding.DecodeString(f.from)
		if err != nil {
			return nil, fmt.Errorf("%s: expected a file in base64: %w", f.path, err)
		}
		*f.to = string(text)
	}
	out.Spec.Left, out.Spec.Right = in.Spec.Left, in.Spec.Right
	out.Spec.InitialInstances, out.Spec.MaxInstances, out.Spec.MinInstances = in.Spec.InitInstanceNum, in.Spec.MaxInstanceNum, in.Spec.MinInstanceNum
	out.Spec.Address = in.Spec.ServiceAddress
	return json.Marshal(&out)
}
