// Command faults does faults to masters by chance while clients use them, and checks what the clients see (package
// history). "make faults" runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"minik8s/internal/hosts"
	"minik8s/internal/hosts/history"
	"minik8s/internal/machine"
)

func main() { machine.Run(run) }

func run() int {
	o := history.Options{Log: os.Stdout}
	masters := flag.Int("masters", 3, "how many masters there are")
	flag.IntVar(&o.Faults, "faults", 1000, "how many faults are done")
	flag.IntVar(&o.PerRound, "per-round", 25, "how many faults are done before what was recorded is checked")
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "what the faults follow from")
	flag.StringVar(&o.Dir, "dir", "build/faults", "where the record of a failure goes")
	flag.BoolVar(&o.KeepGoing, "keep-going", false, "go on after a failure")
	flag.BoolVar(&o.Long, "long", true, "have some masters be away for longer than a request waits")
	flag.BoolVar(&o.Save, "save", false, "keep the records of good rounds, too")
	check := flag.String("check", "", "only check a history that was recorded, by its file")
	flag.Parse()
	if *check != "" {
		return recheck(*check)
	}
	if flag.NArg() != 2 || *masters < 1 {
		fmt.Fprintln(os.Stderr, "usage: faults [FLAGS] MINIK8SD IMAGES")
		flag.PrintDefaults()
		return 2
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "faults: hosts need root: try sudo")
		return 1
	}
	fmt.Printf("%d masters, seed %d\n", *masters, o.Seed)
	if err := all(flag.Arg(0), flag.Arg(1), *masters, o); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 1
	}
	return 0
}

func all(binary, images string, n int, o history.Options) (err error) {
	lab, err := hosts.New(binary, images)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	masters, err := history.Masters(ctx, lab, n)
	if err != nil {
		return err
	}
	_, err = history.Run(ctx, lab, masters, o)
	return err
}

// recheck checks a history again, for whoever changes the check.
func recheck(path string) int {
	h, err := history.Load(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 1
	}
	problems := history.Check(h)
	for _, p := range problems {
		fmt.Println(p)
	}
	return min(1, len(problems))
}
