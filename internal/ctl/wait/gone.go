package wait

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// patience is the time after which a slow deletion is explained.
const patience = 5 * time.Second

// Gone waits until an object is gone, or another has its name. With an empty uid any object of that name counts. A
// timeout of 0 means no limit.
func Gone(ctx context.Context, s *session.Session, key client.Key, uid types.UID, timeout time.Duration) error {
	name := brief.Ref(key.Kind, key.Name)
	why := "minik8sd ctl why " + key.Kind.Singular + " " + key.Name + brief.Namespace(key.Namespace)
	look := func(ctx context.Context) (bool, string, error) {
		obj, err := s.API.Get(ctx, key)
		switch {
		case apierrors.IsNotFound(err):
			return true, "", nil
		case err != nil:
			return false, "", err
		case uid != "" && obj.GetUID() != uid:
			return true, "", nil
		}
		return false, brief.Leaving(obj), nil
	}
	_, err := Until(ctx, s, s.Now(), Awaited{
		Name: name, Look: look, Timeout: timeout, Patience: patience, Hint: "; Ctrl-C stops waiting, not deleting",
		Late: func(_ string, took time.Duration) error {
			return exit.Failf(exit.Failed, "%s is still there after %s; %s tells why", name, took, why)
		},
		Note: func(state string) string {
			return "still waiting for " + name + ": " + state + "; " + why + " tells more"
		},
	})
	return err
}
