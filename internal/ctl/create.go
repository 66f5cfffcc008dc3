package ctl

import (
	"encoding/json"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
)

func (p *program) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "create objects; fails for those that exist", ArgsUsage: "[KIND] -f FILE|FOLDER|URL|-",
		Flags: append(fileFlags(), writeFlags()...),
		Action: func(c *cli.Context) error {
			return p.eachDocument(c, (*session).create)
		},
	}
}

// create sends a document as it was written.
func (s *session) create(c *cli.Context, d *document) (api.Object, string, error) {
	opts, err := s.writeOptions(c)
	if err != nil {
		return nil, "", err
	}
	body, err := json.Marshal(d.doc)
	if err != nil {
		return nil, "", err
	}
	obj, err := s.api.CreateRaw(c.Context, d.kind, d.namespace, body, opts)
	if apierrors.IsAlreadyExists(err) {
		return nil, "", failf(codeConflict, "%s exists already; minik8sd ctl apply changes it, minik8sd ctl update replaces it",
			brief.Ref(d.kind, d.name))
	}
	return obj, "created", err
}
