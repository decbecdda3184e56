# The tasks of a developer. `make` lists them.

BIN      := build/bin
DEVSTACK := $(BIN)/devstack
PROGRESS := sh tools/progress.sh

# Most tests wait for a server or a timer: more of them than cores run at a time. Packages that
# wait long begin first, beside them those that compute.
TEST_FLAGS := -timeout=20m -p=3 -parallel=6
PACKAGES := ./e2e ./workflows ./...

# CI runs a failed test once more; tools/reruns.sh says which repetitions do not count.
RERUN := $(if $(CI),--rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report=$(CURDIR)/build/reruns.txt)

# Input of `make demo` and `make up`: a git repository (REPO) or a depot in a .txtar file
# (DEPOT), and the number of changelists (CHANGES).
DEPOT_FLAGS := $(if $(REPO),-repo "$(REPO)") $(if $(DEPOT),-depot "$(DEPOT)") $(if $(CHANGES),-changes "$(CHANGES)")

.DEFAULT_GOAL := help
.PHONY: help demo up down test test-server race corpus canary chaos rewritechaos endpointtest outage scale check lint deploycheck composetest systemdtest kubernetestest benchcheck vulncheck fuzz reproduce sbom bench bench-save bench-diff fmt generate build clean $(DEVSTACK)

help: ## list the targets
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 14
	@echo "demo and up take REPO=/path/to/git/repository or DEPOT=/path/to/depot.txtar, and CHANGES=20;"
	@echo "$(DEVSTACK) -h lists all settings"

demo: $(DEVSTACK) ## review some changelists on this machine and print the results
	@$(DEVSTACK) $(DEPOT_FLAGS) demo

up: $(DEVSTACK) ## the same, and keep running until Ctrl-C
	@$(DEVSTACK) $(DEPOT_FLAGS) up

down: ## stop everything that runs
	@if [ -x $(DEVSTACK) ]; then $(DEVSTACK) down; fi

# The race detector takes two to eight times the processor time and needs a C compiler. It
# runs the packages whose code starts goroutines or shares memory; the others are linked into
# their tests. The end-to-end tests are left out: the processes that they start are built
# without it. So are p4's TestContext, because with it parsing takes longer than a parse may
# take, and the tests that measure how work grows.
CONCURRENT := ^[[:space:]]+go |sync\.(Mutex|RWMutex|WaitGroup|Map|Pool|Once|Cond)|atomic\.|errgroup|chan 
RACED = $(shell go list -f '{{range .GoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./... | xargs grep -lE '$(CONCURRENT)' | xargs -n1 dirname | sort -u | grep -v /e2e)

test: $(DEVSTACK) $(BIN)/gotestsum $(BIN)/temporal-server $(BIN)/temporal-sql-tool $(BIN)/collector ## all tests, against a real Postgres and a real Temporal
	@rm -f build/reruns.txt
	@$(DEVSTACK) exec -- $(BIN)/gotestsum --format=pkgname --hide-summary=skipped --jsonfile=build/test.json $(RERUN) --packages="$(PACKAGES)" -- $(TEST_FLAGS)
	@sh tools/reruns.sh build/reruns.txt
	@sh tools/skips.sh build/test.json

# What differs between servers, against the newest one that builds with our Go, on Postgres.
SERVER_TESTS := ResetToEveryEvent|TemporalReset|TemporalBatchReset|TerminatedReview|AbandonedReplay|PausedReview|ConfiguredRate|BreakerMetric|Outage|PeopleOvertakeBots
test-server: VERSION := 1.32.1
test-server: $(DEVSTACK) $(BIN)/gotestsum ## some of the tests against a Temporal server on Postgres: VERSION=1.32.1
	@$(PROGRESS) "building Temporal $(VERSION), which takes minutes the first time" sh tools/server.sh build $(VERSION)
	@$(DEVSTACK) exec -- sh tools/server.sh run $(VERSION) $(BIN)/gotestsum --format=testname --hide-summary=skipped --jsonfile=build/test-server.json \
		-- $(TEST_FLAGS) -count=1 -run='$(SERVER_TESTS)' ./workflows ./internal/temporal ./criticizer ./e2e
	@sh tools/skips.sh build/test-server.json

race: $(DEVSTACK) $(BIN)/gotestsum ## the tests of concurrent packages with the race detector
	@rm -f build/reruns.txt
	@$(DEVSTACK) exec -- $(BIN)/gotestsum --format=pkgname --hide-summary=skipped --jsonfile=build/race.json $(RERUN) --packages="$(RACED)" -- -race -skip='^TestContext$$|Linear$$' $(TEST_FLAGS)
	@sh tools/reruns.sh build/reruns.txt
	@sh tools/skips.sh build/race.json

corpus: ## compare redaction and the Perforce client with outside data: CORPUS=/path/to/corpus
	@test -n "$(CORPUS)" || { echo "name the data: make corpus CORPUS=/path/to/corpus (docs/redaction.md)" >&2; exit 2; }
	CRITICIZER_CORPUS_DIR="$(abspath $(CORPUS))" go test -count=1 -timeout=20m -run Corpus -v ./redaction ./p4/...

canary: $(DEVSTACK) ## plant secrets, review them, search every output and store for them
	@$(DEVSTACK) exec -- go test -count=1 -v -run '^TestCanary' ./e2e

chaos: $(DEVSTACK) ## kill and break deliveries at every point, count the mails: CHAOS_RUNS=20
	@CHAOS_RUNS=$${CHAOS_RUNS:-1} $(DEVSTACK) exec -- go test -C e2e -count=1 -timeout=0 -parallel=64 -run='^TestChaos$$'

rewritechaos: $(DEVSTACK) ## kill and break the rewrite queue at every point, count at the provider: CHAOS_RUNS=1
	@CHAOS_RUNS=$${CHAOS_RUNS:-1} $(DEVSTACK) exec -- go test -count=1 -timeout=0 -parallel=4 -v -run='^Test(RewriteChaos|LongDrain|LyingProvider)' \
		./rewrite/chaos ./rewrite/activities

endpointtest: build/ollama/ollama ## a real Ollama with its default context: building it takes 10 minutes once
	CRITICIZER_TEST_OLLAMA="$(CURDIR)/build/ollama/ollama" go test -count=1 -v -run '^TestOllama$$' ./llm

build/ollama/ollama: tools/ollama.sh
	sh tools/ollama.sh build/ollama
	@touch $@

kubernetestest: build/kube-apiserver ## the manifests on a real API server: Debian package etcd-server; building it takes 15 minutes once
	CRITICIZER_TEST_APISERVER="$(CURDIR)/build/kube-apiserver" go test -C tools/deploy -count=1 -v -run '^TestManifestsOnAnAPIServer$$' .

build/kube-apiserver: tools/kubernetes.sh
	@mkdir -p build
	@$(PROGRESS) "building the API server of Kubernetes" sh tools/kubernetes.sh 1.33.13 build/kube-apiserver

outage: $(DEVSTACK) ## model, Perforce, mail, webhook broken in six ways for OUTAGE=1m each, with 100 reviews
	@OUTAGE=$${OUTAGE:-1m} $(DEVSTACK) exec -- go test -count=1 -timeout=0 -v -run='^TestOutage$$' ./e2e

# It counts the mails at the end and prints its progress; docs/measured.md explains the figures.
scale: $(DEVSTACK) $(BIN)/temporal-server $(BIN)/temporal-sql-tool ## thousands of reviews at once on servers that wait for the disk: MINUTES=15
	@SCALE_MINUTES=$(or $(MINUTES),15) $(DEVSTACK) exec -- go test -count=1 -timeout=0 -v -run='^TestScale$$' ./e2e

check: test race lint ## test and lint, as CI does

lint: $(BIN)/golangci-lint $(BIN)/sqlc $(BIN)/workflowcheck ## format, linters, generated code, go.mod
	$(BIN)/golangci-lint run
	$(BIN)/golangci-lint fmt --diff
	$(BIN)/workflowcheck ./workflows/... ./rewrite/workflows/...
	$(BIN)/sqlc diff
	go mod tidy -diff
	@$(MAKE) --no-print-directory deploycheck benchcheck vulncheck

# Its tests read files outside of their module, which Go's cache of results does not notice.
deploycheck: $(BIN)/gotestsum ## check image, compose file, units, manifests
	@mkdir -p build && rm -f build/reruns.txt
	@cd tools/deploy && $(CURDIR)/$(BIN)/gotestsum --format=pkgname --hide-summary=skipped --jsonfile=$(CURDIR)/build/deploycheck.json $(RERUN) --packages=. -- $(TEST_FLAGS) -count=1
	@sh tools/reruns.sh build/reruns.txt
	@sh tools/skips.sh build/deploycheck.json

composetest: ## the compose files on a real engine: root, Debian packages docker.io buildah busybox-static debootstrap
	@bash tools/composetest.sh

systemdtest: ## the units under a real systemd: root, Debian packages systemd-container debootstrap
	@bash tools/systemdtest.sh

benchcheck: ## compile the benchmarks beside rivals
	@$(PROGRESS) "checking the benchmarks" go vet -C tools/bench ./...
	@go test -C tools/bench .

vulncheck: $(BIN)/govulncheck ## known vulnerabilities that the code reaches, if their database is reachable
	@sh tools/govulncheck.sh $(BIN)/govulncheck ./...

fuzz: ## each fuzz target for a time: FUZZTIME=20s
	@sh tools/fuzz.sh $(or $(FUZZTIME),20s)

reproduce: ## build the last commit twice, in two places, and compare
	@sh tools/reproduce.sh

sbom: build $(BIN)/cyclonedx-gomod ## what the commands consist of, as CycloneDX: build/sbom
	@mkdir -p build/sbom
	@for command in criticizer-worker criticizer-starter criticizer complaint-rewrite; do $(BIN)/cyclonedx-gomod bin -json -noserial -notimestamp -output build/sbom/$$command.cdx.json $(BIN)/$$command || exit 1; done
	@ls build/sbom/*.cdx.json

bench: $(DEVSTACK) ## measure beside rivals and floors: build/bench.json
	@go build -C tools/bench -o "$(CURDIR)/$(BIN)/bench" .
	@$(DEVSTACK) exec -- $(BIN)/bench

# The figures by day and commit.
BENCHES = tools/bench/history

bench-save: ## keep the figures of the last make bench, to be committed
	@[ -f build/bench.txt ] || { echo "error: there is no build/bench.txt: run make bench first" >&2; exit 1; }
	@mkdir -p $(BENCHES) && cp build/bench.txt "$(BENCHES)/$$(date -u +%Y%m%dT%H%M)-$$(git rev-parse --short HEAD).txt" && ls $(BENCHES) | tail -1

bench-diff: ## compare the last make bench with the last figures that were kept
	@[ -f build/bench.txt ] && ls $(BENCHES)/*.txt >/dev/null || { echo "error: there is nothing to compare: run make bench and make bench-save first" >&2; exit 1; }
	@go -C tools/bench tool benchstat "saved=$$(ls -d $(CURDIR)/$(BENCHES)/*.txt | tail -1)" "now=$(CURDIR)/build/bench.txt"

fmt: $(BIN)/golangci-lint ## format the code
	$(BIN)/golangci-lint fmt

generate: $(BIN)/sqlc ## regenerate the generated code
	$(BIN)/sqlc generate

# Static. An installation has criticizer, criticizer-worker, criticizer-starter and complaint-rewrite.
build: ## compile worker, starter, criticizer and complaint-rewrite into build/bin
	@mkdir -p $(BIN)
	@$(PROGRESS) "building the commands" env CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./worker ./starter ./criticizer ./rewrite/cmd/complaint-rewrite
	@cp $(BIN)/worker $(BIN)/criticizer-worker && cp $(BIN)/starter $(BIN)/criticizer-starter

clean: ## stop everything that runs and remove build/
	@if [ -x $(DEVSTACK) ]; then $(DEVSTACK) clean; fi
	@rm -rf build

$(BIN)/govulncheck: GOVULNCHECK_VERSION := v1.8.0
$(BIN)/govulncheck:
	@mkdir -p $(BIN)
	@$(PROGRESS) "building govulncheck" env GOBIN="$(CURDIR)/$(BIN)" go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

# The go command decides whether it must be rebuilt.
$(DEVSTACK):
	@mkdir -p $(BIN)
	@$(PROGRESS) "building devstack" env CGO_ENABLED=0 go build -buildvcs=false -o $@ ./tools/devstack

$(BIN)/golangci-lint: LINT_PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/sqlc: LINT_PACKAGE := github.com/sqlc-dev/sqlc/cmd/sqlc
$(BIN)/workflowcheck: LINT_PACKAGE := go.temporal.io/sdk/contrib/tools/workflowcheck
$(BIN)/gotestsum: LINT_PACKAGE := gotest.tools/gotestsum
$(BIN)/cyclonedx-gomod: LINT_PACKAGE := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(BIN)/golangci-lint $(BIN)/sqlc $(BIN)/workflowcheck $(BIN)/gotestsum $(BIN)/cyclonedx-gomod: tools/lint/go.mod
	@mkdir -p $(BIN)
	@$(PROGRESS) "building $(notdir $@)" go build -C tools/lint -o "$(CURDIR)/$@" $(LINT_PACKAGE)

# Temporal's own server, for a test with TLS, which the development server does not have.
$(BIN)/temporal-server: tools/temporal/go.mod
	@mkdir -p $(BIN)
	@$(PROGRESS) "building a Temporal server with TLS, which takes minutes the first time" go build -C tools/temporal -o "$(CURDIR)/$@" go.temporal.io/server/cmd/server

# Writes the schema of a Temporal server into Postgres.
$(BIN)/temporal-sql-tool: tools/temporal/go.mod
	@mkdir -p $(BIN)
	@$(PROGRESS) "building temporal-sql-tool, which takes minutes the first time" go build -C tools/temporal -o "$(CURDIR)/$@" go.temporal.io/server/cmd/tools/sql

$(BIN)/collector: tools/deploy/go.mod tools/deploy/collector/main.go
	@mkdir -p $(BIN)
	@$(PROGRESS) "building an OpenTelemetry collector" go build -C tools/deploy -o "$(CURDIR)/$@" ./collector
