package tokencleaner

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

// Tokens go when they expire; eternal ones, prolonged ones and other Secrets stay.
func TestExpiredTokensGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}})
		store := func(lasts time.Duration) *corev1.Secret {
			opts := bootstrap.Options{}
			if lasts > 0 {
				opts.Expires = time.Now().Add(lasts)
			}
			return ct.Create(c, bootstrap.SecretOf(bootstrap.New(""), opts))
		}
		short, prolonged := store(time.Minute), store(time.Minute)
		long, eternal := store(time.Hour), store(0)
		plain := ct.Create(c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-plain"},
			Data: map[string][]byte{"expiration": []byte("2020-01-01T00:00:00Z")}})
		c.Start(New(c.As("token-cleaner"), c.Views(), slog.New(slog.DiscardHandler)).Run)
		left := func() map[string]bool {
			t.Helper()
			list, _, err := client.All[*corev1.Secret](c.Context(), c.Admin(), api.Secrets, client.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out := map[string]bool{}
			for _, s := range list {
				out[s.Name] = true
			}
			return out
		}
		upd := prolonged.DeepCopy()
		upd.Data["expiration"] = []byte(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		if _, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute + time.Second)
		synctest.Wait()
		if got := left(); len(got) != 4 || got[short.Name] || !got[prolonged.Name] {
			t.Errorf("after a minute: %v", got)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got := left(); len(got) != 2 || !got[eternal.Name] || !got[plain.Name] || got[long.Name] {
			t.Errorf("after an hour: %v", got)
		}
	})
}
