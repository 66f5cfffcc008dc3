package slurmtest

import (
	"strings"
	"testing"
	"time"
)

func TestCluster(t *testing.T) {
	began := time.Now()
	c := Start(t, Options{})
	t.Logf("it started in %v", time.Since(began))
	out := c.Do(`cat >j.sh <<'E'
#!/bin/bash -l
module load cuda/10
echo "user=$(id -un) cards=$SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES loaded=$LOADED"
E
sbatch --wait --gres=gpu:2 --output=out j.sh; cat out`)
	if !strings.Contains(out, "user=hpc cards=0,1 0,1 loaded=cuda/10") {
		t.Error(out)
	}
	if c.Calls("sbatch") != 1 {
		t.Error("calls are not counted")
	}
}
