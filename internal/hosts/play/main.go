// Command play plays a scenario (package hosts) for people: each step is shown when it begins. "make demo-cluster" runs
// it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"minik8s/internal/hosts"
	"minik8s/internal/machine"
)

func main() { machine.Run(run) }

func run() int {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: play MINIK8SD IMAGES SCENARIO")
		return 2
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "play: hosts need root: try sudo")
		return 1
	}
	if err := play(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "play:", err)
		return 1
	}
	return 0
}

func play(binary, images, path string) (err error) {
	s, err := hosts.Read(path)
	if err != nil {
		return err
	}
	lab, err := hosts.New(binary, images)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := lab.Close(); err == nil {
			err = cerr
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return s.Play(ctx, lab, os.Stdout)
}
