package strategy

import (
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
	"minik8s/internal/registry/subresource"
	"minik8s/internal/tokens"
)

func serviceAccountStrategy(a *tokens.Authority) *registry.Strategy {
	return &registry.Strategy{
		Validate:     checkOne(validation.ServiceAccount),
		Subresources: map[string]registry.Subresource{"token": subresource.Token(a)},
	}
}
