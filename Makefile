# minik8s: a whole cluster in one file. The two commands to know: make demo, make test.

GO      ?= go
VERSION ?= 0.1.0
LDFLAGS  = -s -w -X minik8s/roles.Version=$(VERSION)
BIN      = bin/minik8sd

# STATICCHECK finds what vet does not, such as an error that is never used; pinned, and fetched as a module.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := build
.PHONY: build demo demo-cluster demo-autoscale long faults gpu-kills test test-clients test-metrics test-prometheus race check bench oracle runtime images testtools lint vet clean

# build makes bin/minik8sd, with runc and the keeper of containers inside; static, so that a kernel is all it needs.
build: runtime
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) .

# runtime builds what travels inside the binary; a no-op when it is up to date.
runtime:
	@sh deploy/runtime/build.sh

# images makes the images of the demo and of the tests; a no-op when they are up to date.
images:
	@sh deploy/images/build.sh
	@sh deploy/images/python.sh

# demo starts a cluster in a network namespace of its own, runs a pod, shows it, and cleans up.
demo: build images
	@sh deploy/demo.sh

# demo-cluster shows three machines on this one: one is lost, its work moves, it comes back.
demo-cluster: build images
	@$(GO) run ./internal/hosts/play $(BIN) build/images testdata/scenarios/demo.txt

# demo-autoscale shows replicas that follow the load on three machines, and draws their course as build/autoscale.svg.
demo-autoscale: build images
	@$(GO) run ./internal/hosts/autoscale $(BIN) build/images testdata/scenarios/autoscale/machines.txt build/autoscale.svg

# long plays what takes minutes: ten machines that are all masters, three of them lost; replicas that follow the load.
long: build images
	@for f in testdata/scenarios/long/*.txt; do $(GO) run ./internal/hosts/play $(BIN) build/images $$f || exit 1; done
	@$(MAKE) demo-autoscale

# faults does so many faults by chance to three masters that are in use, and checks what their clients see. SEED does those
# of an earlier run again; what was recorded of a failure is in build/faults.
FAULTS  ?= 1000
MASTERS ?= 3
faults: build images
	$(GO) run ./internal/hosts/history/faults -faults $(FAULTS) -masters $(MASTERS) $(if $(SEED),-seed $(SEED)) $(BIN) build/images

# gpu-kills has so many kills by chance of the daemon, the connection and the login node's scripts, while GPU jobs come and go on a
# real Slurm. SEED does those of an earlier run again. As root; a thousand take an hour.
KILLS ?= 1000
gpu-kills: build images testtools
	KILLS=$(KILLS) SEED=$(SEED) $(GO) test -timeout 5h -count 1 -v -run TestGpuJobsKilledAtRandom ./roles

# lint is what the compiler does not see.
lint: vet
	$(GO) run $(STATICCHECK) ./...

# vet is the part of lint that takes seconds.
vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...

# check is the fast part of the tests: seconds, no root.
check: runtime vet
	$(GO) test -short ./...

# test is the whole suite: also real etcd, containerd, containers and namespaces. As root.
test: build images testtools vet
	@test "$$(id -u)" = 0 || echo "make test: not root, so what needs real containers is skipped"
	$(GO) test -timeout 20m ./...
	$(MAKE) oracle ORACLE=short

# test-metrics compares what we say of usage with the programs that others know it from: a real Prometheus scrapes a cluster, with
# the files in deploy/, and is asked every dashboard's queries; a real cAdvisor is read in the place of the kubelets, and says the
# same. It is not in test since both have to be built first, which takes minutes.
test-metrics: build images testtools
	@sh deploy/prometheus/build.sh
	@sh deploy/cadvisor/build.sh
	$(GO) test -timeout 10m -count 1 -v -run 'TestPrometheus|TestRealCAdvisor' ./roles

# test-clients uses a cluster with stock kubectl and Helm, as people do, and runs all tests that want kubectl. It is not in test since both
# have to be built first, which takes minutes.
test-clients: build images testtools
	@sh deploy/clients/build.sh
	PATH=$(CURDIR)/build/tools:$$PATH $(GO) test -timeout 10m -count 1 -v -run 'TestClient|TestSeeing|TestUsage|TestKubectl' ./roles

# test-prometheus is what test-metrics was called when it knew one of them.
test-prometheus: test-metrics

# race is the suite under the race detector, which needs cgo. RACE narrows it: make race RACE=./internal/registry/...
RACE ?= ./...
race: runtime images testtools
	CGO_ENABLED=1 $(GO) test -race -timeout 40m $(RACE)

# testtools installs what some tests need on a bare machine.
testtools:
	@sh deploy/testtools.sh

# oracle compares our answers with those of Kubernetes' own code.
ORACLE ?= long
oracle:
	@if [ -d testdata/oracle ]; then cd testdata/oracle && $(GO) test $(if $(filter short,$(ORACLE)),-short,) ./...; fi

# bench prints every figure beside what bounds it, and writes build/bench.json.
bench: build images
	@sh deploy/benchtools.sh
	$(GO) run ./internal/bench -out build/bench.json $(BENCH)

clean:
	rm -rf bin build internal/kubelet/containerd/bin/*.zst internal/kubelet/containerd/bin/stamp
