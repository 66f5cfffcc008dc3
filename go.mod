module minik8s

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1 // tests: whether what clients saw is linearizable
	github.com/containerd/containerd v1.7.35 // containers, in process
	github.com/containerd/containerd/api v1.8.0 // containerd's events and requests
	github.com/containerd/fifo v1.1.0 // the pipes of containers' output
	github.com/containerd/log v0.1.0 // containerd's log, handed to slog
	github.com/containerd/ttrpc v1.2.7 // what shims speak
	github.com/containerd/typeurl/v2 v2.2.2 // containerd's typed options
	github.com/distribution/reference v0.6.0 // image names, by Docker's rules
	github.com/fsnotify/fsnotify v1.10.1 // logs -f without a poll
	github.com/godbus/dbus/v5 v5.2.4 // being told of a shutdown by systemd-logind
	github.com/golang-jwt/jwt/v5 v5.3.1 // tokens of service accounts; etcd brings it
	github.com/google/btree v1.1.3 // the cache, in the order of keys
	github.com/google/cadvisor v0.52.1 // what containers use, by cAdvisor's API
	github.com/google/nftables v0.3.0 // the pod network's rules, by netlink
	github.com/google/uuid v1.6.0 // UIDs that follow from others; apimachinery brings it
	github.com/gorilla/websocket v1.5.4-0.20250319132907-e064f32e3674 // exec, attach and port-forward
	github.com/hbollon/go-edlib v1.6.0 // which word was meant: edit distance
	github.com/klauspost/compress v1.19.2 // runc and the keeper inside the binary; objects in memory
	github.com/labstack/echo/v4 v4.16.0 // HTTP routes
	github.com/mdlayher/netlink v1.7.3-0.20250113171957-fbb4dce95f42 // nftables' events; nftables brings it
	github.com/moby/sys/signal v0.7.0 // stop signals by name
	github.com/moby/sys/user v0.3.0 // users and groups by an image's files
	github.com/opencontainers/go-digest v1.0.0 // names of content
	github.com/opencontainers/image-spec v1.1.1 // images
	github.com/opencontainers/runtime-spec v1.2.1 // containers; containerd 1.7 does not compile with 1.3
	github.com/pelletier/go-toml v1.9.5 // containerd's plugins take their settings as TOML
	github.com/prometheus/client_golang v1.24.1 // /metrics; etcd brings it
	github.com/prometheus/procfs v0.21.1 // /proc
	github.com/sirupsen/logrus v1.10.2 // containerd logs to it
	github.com/urfave/cli/v2 v2.27.7 // the command line
	github.com/vishvananda/netlink v1.3.0 // links, addresses and routes of pods
	go.etcd.io/bbolt v1.5.0 // containerd's metadata
	go.etcd.io/etcd/api/v3 v3.7.3 // etcd's requests
	go.etcd.io/etcd/client/pkg/v3 v3.7.3 // TLS between members
	go.etcd.io/etcd/client/v3 v3.7.3 // an etcd that others run
	go.etcd.io/etcd/etcdutl/v3 v3.7.3 // a store out of a snapshot
	go.etcd.io/etcd/server/v3 v3.7.3 // the store, in process
	go.etcd.io/raft/v3 v3.7.0 // a single member elects itself
	go.uber.org/zap v1.28.0 // etcd's log, handed to slog
	golang.org/x/net v0.61.0 // html: links in what pods serve
	golang.org/x/sys v0.49.0 // mounts, namespaces, madvise
	golang.org/x/term v0.47.0 // terminals of exec
	google.golang.org/grpc v1.84.0 // grpc probes; containerd and etcd bring it
	google.golang.org/protobuf v1.36.12 // containerd's messages
	gopkg.in/evanphx/json-patch.v4 v4.13.0 // JSON and merge patches
	k8s.io/api v0.37.2 // the wire's types
	k8s.io/apimachinery v0.37.2 // metadata, selectors, patches, protobuf
	k8s.io/client-go v0.37.2 // work queues and kubeconfigs
	k8s.io/kube-aggregator v0.37.2 // the wire's type of APIServices
	k8s.io/kubelet v0.37.2 // the types of /stats/summary
	k8s.io/streaming v0.37.2 // SPDY for exec and port-forward
	k8s.io/utils v0.0.0-20260626114624-be93311217bd // values behind pointers, IP families; apimachinery brings it
	sigs.k8s.io/json v0.0.0-20260909141634-11ed52e25bc5 // strict decoding
	sigs.k8s.io/yaml v1.6.0 // manifests
)

require (
	github.com/AdaLogics/go-fuzz-headers v0.0.0-20230811130428-ced1acdcaa24 // indirect
	github.com/AdamKorcz/go-118-fuzz-build v0.0.0-20230306123547-8075edf89bb0 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/Microsoft/hcsshim v0.11.7 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/containerd/cgroups v1.1.0 // indirect
	github.com/containerd/continuity v0.4.4 // indirect
	github.com/containerd/errdefs v1.0.0 // indirect
	github.com/containerd/platforms v0.2.1
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/cyphar/filepath-securejoin v0.5.1 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/docker/go-events v0.0.0-20250808211157-605354379745 // indirect
	github.com/docker/go-metrics v0.1.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/felixge/httpsnoop v1.1.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-openapi/jsonpointer v1.0.0 // indirect
	github.com/go-openapi/jsonreference v1.0.0 // indirect
	github.com/go-openapi/swag v0.27.1 // indirect
	github.com/go-openapi/swag/cmdutils v0.27.1 // indirect
	github.com/go-openapi/swag/conv v0.27.1 // indirect
	github.com/go-openapi/swag/fileutils v0.27.1 // indirect
	github.com/go-openapi/swag/jsonutils v0.27.1 // indirect
	github.com/go-openapi/swag/loading v0.27.1 // indirect
	github.com/go-openapi/swag/mangling v0.27.1 // indirect
	github.com/go-openapi/swag/netutils v0.27.1 // indirect
	github.com/go-openapi/swag/pools v0.27.1 // indirect
	github.com/go-openapi/swag/stringutils v0.27.1 // indirect
	github.com/go-openapi/swag/typeutils v0.27.1 // indirect
	github.com/go-openapi/swag/yamlutils v0.27.1 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/groupcache v0.0.0-20210331224755-41bb18bfe9da // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/gnostic-models v0.7.0
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus v1.1.0 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.3 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.29.0 // indirect
	github.com/intel/goresctrl v0.5.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/mdlayher/socket v0.6.0 // indirect
	github.com/moby/locker v1.0.1 // indirect
	github.com/moby/spdystream v0.5.1 // indirect
	github.com/moby/sys/mountinfo v0.7.2 // indirect
	github.com/moby/sys/sequential v0.5.0 // indirect
	github.com/moby/sys/userns v0.1.0 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/opencontainers/selinux v1.13.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/soheilhy/cmux v0.1.5 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	github.com/tmc/grpc-websocket-proxy v0.0.0-20220101234140-673ab2c3ae75 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/vishvananda/netns v0.0.4 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/xiang90/probing v0.0.0-20221125231312-a49e3df8f510 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	go.etcd.io/etcd/pkg/v3 v3.7.3 // indirect
	go.opencensus.io v0.24.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.68.0 // indirect
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.69.0 // indirect
	go.opentelemetry.io/otel v1.45.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.45.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.45.0 // indirect
	go.opentelemetry.io/otel/metric v1.45.0 // indirect
	go.opentelemetry.io/otel/sdk v1.45.0 // indirect
	go.opentelemetry.io/otel/trace v1.45.0 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0
	golang.org/x/oauth2 v0.37.0 // indirect
	golang.org/x/sync v0.24.0
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0
	google.golang.org/genproto v0.0.0-20260715232425-e75dac1f907d // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.2.1 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v6 v6.4.2
)

require (
	github.com/containerd/cgroups/v3 v3.0.2 // the form in which ctr asks what a task uses
	github.com/coredns/coredns v1.15.0
	github.com/miekg/dns v1.1.73
	github.com/pkg/sftp v1.13.12
	k8s.io/metrics v0.37.2
)

require (
	github.com/distribution/distribution/v3 v3.1.2 // the registry of functions' images
	github.com/google/go-containerregistry v0.22.1 // makes and pushes them
	github.com/theory/jsonpath v0.12.3 // paths of the States Language (RFC 9535)
)

require github.com/robfig/cron/v3 v3.0.1

require (
	github.com/apparentlymart/go-cidr v1.1.1 // indirect
	github.com/coredns/caddy v1.1.4 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/dnstap/golang-dnstap v0.4.0 // indirect
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.5 // indirect
	github.com/emicklei/go-restful/v3 v3.13.0 // indirect
	github.com/farsightsec/golang-framestream v0.3.0 // indirect
	github.com/flynn/go-shlex v0.0.0-20150515145356-3f9db97f8568 // indirect
	github.com/gorilla/handlers v1.5.2 // indirect
	github.com/gorilla/mux v1.8.1 // indirect
	github.com/grpc-ecosystem/grpc-opentracing v0.0.0-20180507213350-8e809c8a8645 // indirect
	github.com/hashicorp/golang-lru/arc/v2 v2.0.5 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/jpillora/backoff v1.0.0 // indirect
	github.com/kr/fs v0.1.0 // indirect
	github.com/mdlayher/vsock v1.3.0 // indirect
	github.com/mwitkow/go-conntrack v0.0.0-20190716064945-2f068394615f // indirect
	github.com/opentracing/opentracing-go v1.2.0 // indirect
	github.com/pires/go-proxyproto v0.15.0 // indirect
	github.com/prometheus/exporter-toolkit v0.20.0 // indirect
	github.com/prometheus/otlptranslator v1.0.0 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	github.com/quic-go/quic-go v0.64.1 // indirect
	github.com/redis/go-redis/extra/rediscmd/v9 v9.0.5 // indirect
	github.com/redis/go-redis/extra/redisotel/v9 v9.0.5 // indirect
	github.com/redis/go-redis/v9 v9.7.3 // indirect
	go.opentelemetry.io/contrib/bridges/prometheus v0.67.0 // indirect
	go.opentelemetry.io/contrib/exporters/autoexport v0.67.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc v0.21.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp v0.21.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc v1.42.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp v1.43.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.43.0 // indirect
	go.opentelemetry.io/otel/exporters/prometheus v0.64.0 // indirect
	go.opentelemetry.io/otel/exporters/stdout/stdoutlog v0.21.0 // indirect
	go.opentelemetry.io/otel/exporters/stdout/stdoutmetric v1.42.0 // indirect
	go.opentelemetry.io/otel/exporters/stdout/stdouttrace v1.42.0 // indirect
	go.opentelemetry.io/otel/log v0.21.0 // indirect
	go.opentelemetry.io/otel/sdk/log v0.21.0 // indirect
	go.opentelemetry.io/otel/sdk/metric v1.45.0 // indirect
	go.uber.org/automaxprocs v1.6.0 // indirect
)

replace github.com/opencontainers/runtime-spec => github.com/opencontainers/runtime-spec v1.2.1
