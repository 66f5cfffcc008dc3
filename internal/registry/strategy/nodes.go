package strategy

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func nodeStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.Node),
		Validate: checkOne(func(node *corev1.Node) field.ErrorList {
			return append(validation.Node(node), validation.NodeStatus(node)...)
		}),
		BornWithStatus: true, // as in Kubernetes: who registers a node knows how it stands
		ValidateUpdate: checkStep(validation.NodeUpdate),
		ValidateStatus: checkStep(func(node, _ *corev1.Node) field.ErrorList { return validation.NodeStatus(node) }),
		CopyStatus:     onStep(func(dst, src *corev1.Node) { dst.Status = src.Status }),
		Fields: func(obj api.Object) fields.Set {
			return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
		},
		FieldNames: []string{"spec.unschedulable"},
		Dialect:    dialect.For(api.Nodes),
		Claims:     claimsOfOne(claimsOfNode),
		Essential:  true,
	}
}

// claimsOfNode: no two nodes give pods addresses of one range.
func claimsOfNode(node *corev1.Node) (claims []registry.Claim) {
	for _, cidr := range node.Spec.PodCIDRs {
		claims = append(claims, registry.Claim{Name: "podcidrs/" + strings.ReplaceAll(cidr, "/", "-"), Field: "spec.podCIDRs", Value: cidr})
	}
	return claims
}
