package serviceaccount

import (
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/informer"
)

const ca = "the CA"

var quiet = slog.New(slog.DiscardHandler)

func start(c *ct.Cluster, cl client.Interface, views *informer.Views) {
	c.Start(New(cl, views, []byte(ca), quiet).Run)
}

// whole waits until these namespaces have what they should, with the account that is not the one of uid.
func whole(c *ct.Cluster, uid string, namespaces ...string) (*corev1.ServiceAccount, *corev1.ConfigMap) {
	var sa *corev1.ServiceAccount
	var cm *corev1.ConfigMap
	for _, ns := range namespaces {
		ct.Until(c, "the account of "+ns, api.ServiceAccounts, func(list []*corev1.ServiceAccount) bool {
			for _, sa = range list {
				if sa.Namespace == ns && sa.Name == account && string(sa.UID) != uid {
					return true
				}
			}
			return false
		})
		ct.Until(c, "the CA of "+ns, api.ConfigMaps, func(list []*corev1.ConfigMap) bool {
			for _, cm = range list {
				if cm.Namespace == ns && cm.Name == rootCA && string(cm.UID) != uid && len(cm.Data) == 1 && cm.Data[caKey] == ca &&
					cm.Annotations[descriptionKey] == description {
					return true
				}
			}
			return false
		})
	}
	return sa, cm
}

func remove(t *testing.T, c *ct.Cluster, obj api.Object) {
	t.Helper()
	if _, err := c.Admin().Delete(c.Context(), client.KeyOf(obj), nil); err != nil {
		t.Fatal(err)
	}
}

// Every namespace has both objects, also after somebody has removed or changed them.
func TestKeepsBoth(t *testing.T) {
	c := ct.New(t)
	start(c, c.As("serviceaccount-controller"), c.Views())
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "later"}})
	sa, cm := whole(c, "", "default", "later")
	remove(t, c, sa)
	whole(c, string(sa.UID), "later")
	remove(t, c, cm)
	_, cm = whole(c, string(cm.UID), "later")
	for name, change := range map[string]func(*corev1.ConfigMap){
		"another-CA":  func(cm *corev1.ConfigMap) { cm.Data[caKey] = "not it" },
		"one-more":    func(cm *corev1.ConfigMap) { cm.Data["x"] = "y" },
		"none":        func(cm *corev1.ConfigMap) { cm.Data = nil },
		"annotations": func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"theirs": "x"} },
	} {
		upd := cm.DeepCopy()
		upd.ResourceVersion = ""
		upd.Labels = map[string]string{"theirs": name}
		change(upd)
		changed, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, after := whole(c, "", "later"); after.Labels["theirs"] != name || after.ResourceVersion == changed.GetResourceVersion() {
			t.Errorf("%s: it was not put right, or more than that: %+v", name, after.ObjectMeta)
		}
	}
}

// Objects with wrong content from before the start are corrected; nothing is created in a terminating namespace.
func TestFindsThemWrong(t *testing.T) {
	c := ct.New(t)
	ct.Create(c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rootCA}, Data: map[string]string{caKey: "of yesterday"}})
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}})
	remove(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}})
	start(c, c.As("serviceaccount-controller"), c.Views())
	whole(c, "", "default")
	list, err := c.Admin().List(c.Context(), api.ServiceAccounts, client.ListOptions{Namespace: "going"})
	if err != nil || len(list.Items) > 0 {
		t.Error(err, list)
	}
}

// One that another client creates at the same moment is corrected, too.
func TestSomebodyIsQuicker(t *testing.T) {
	c := ct.New(t)
	start(c, c.As("serviceaccount-controller"), c.Views())
	for i := range 20 {
		ns := fmt.Sprint("ns-", i)
		ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		// Either may win; in the end the content is ours.
		c.Admin().Create(c.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: rootCA}, //nolint:errcheck // see above
			Data: map[string]string{caKey: "theirs"}}, client.WriteOptions{})
		whole(c, "", ns)
	}
}

func TestKeepsBothInSpiteOfFaults(t *testing.T) {
	c := ct.New(t)
	shaky := faulty.New(c.As("serviceaccount-controller"),
		faulty.Rates{Drop: 0.2, Lose: 0.2, Conflict: 0.2, Repeat: 0.2, Break: 0.02}, 1)
	start(c, shaky, nil)
	var all []string
	for i := range 20 {
		ns := fmt.Sprint("ns-", i)
		all = append(all, ns)
		ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		if i%4 == 0 {
			sa, cm := whole(c, "", ns)
			remove(t, c, sa)
			remove(t, c, cm)
		}
	}
	shaky.Heal()
	whole(c, "", all...)
}
