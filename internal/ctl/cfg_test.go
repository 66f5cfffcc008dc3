package ctl

import (
	"strings"
	"testing"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/exit"
)

func TestCfg(t *testing.T) {
	f := newFake(t)
	if got := f.ctl("", "cfg"); got.out != "sched=spread\n" || got.code != 0 {
		t.Errorf("without a ClusterConfig: %+v", got)
	}
	for _, want := range []string{"min-pods", "random"} { // made, then changed
		if got := f.ctl("", "cfg", "sched="+want); got.out != "sched="+want+"\n" || got.code != 0 {
			t.Errorf("%s: %+v", want, got)
		}
		cfg, ok := f.get("/apis/minik8s.io/v1/clusterconfigs/cluster").(*minik8s.ClusterConfig)
		if !ok || cfg.Spec.Scheduler.Strategy != want {
			t.Fatalf("%s: stored %+v", want, cfg)
		}
		if got := f.ctl("", "cfg"); got.out != "sched="+want+"\n" {
			t.Errorf("%s: shown as %q", want, got.out)
		}
	}
	for args, want := range map[string]string{
		"sched=best": "one of spread, random", "shed=random": "is no setting", "random": "is no setting",
		"sched=random sched=spread": "given twice",
	} {
		if got := f.ctl("", append([]string{"cfg"}, strings.Fields(args)...)...); got.code != exit.Usage || !strings.Contains(got.text, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
