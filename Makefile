# Criticizer: every task of a developer. `make` alone lists them.

BIN      := build/bin
DEVSTACK := $(BIN)/devstack
PROGRESS := sh tools/progress.sh

# The race detector needs cgo, which go turns off where there is no C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# What `make demo` and `make up` show: a git repository (REPO) or a recorded
# depot (DEPOT), and how many of its changelists (CHANGES).
DEPOT_FLAGS := $(if $(REPO),-repo "$(REPO)") $(if $(DEPOT),-depot "$(DEPOT)") $(if $(CHANGES),-changes "$(CHANGES)")

.DEFAULT_GOAL := help
.PHONY: help demo up down test corpus canary chaos rewritechaos outage check lint deploycheck benchcheck vulncheck bench fmt generate build man clean $(DEVSTACK)

help: ## list the targets
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 14
	@echo "demo and up take REPO=/path/to/git/repository or DEPOT=/path/to/recorded/depot, and CHANGES=20;"
	@echo "$(DEVSTACK) -h lists the ports and other settings"

demo: $(DEVSTACK) ## review some changelists on this machine, show what came of them
	@$(DEVSTACK) $(DEPOT_FLAGS) demo

up: $(DEVSTACK) ## the same, and stay until Ctrl-C
	@$(DEVSTACK) $(DEPOT_FLAGS) up

down: ## stop what runs
	@if [ -x $(DEVSTACK) ]; then $(DEVSTACK) down; fi

test: $(DEVSTACK) $(BIN)/gotestsum ## all tests, against a real Postgres and a real Temporal
	@$(DEVSTACK) exec -- $(BIN)/gotestsum --format=pkgname --hide-summary=skipped --jsonfile=build/test.json -- -timeout=20m $(RACE) ./...
	@go run ./tools/skips build/test.json

corpus: ## compare redaction and the Perforce client with outside data: CORPUS=/path/to/corpus
	@test -n "$(CORPUS)" || { echo "name the data: make corpus CORPUS=/path/to/corpus (docs/redaction.md)" >&2; exit 2; }
	CRITICIZER_CORPUS_DIR="$(abspath $(CORPUS))" go test -count=1 -timeout=20m -run Corpus -v ./redaction ./p4/...

canary: $(DEVSTACK) ## plant secrets, review them, search everything that left or stayed
	@$(DEVSTACK) exec -- go test -count=1 -v -run '^TestCanary' ./e2e

chaos: $(DEVSTACK) ## kill and break deliveries at every point, count the mails: CHAOS_RUNS=20
	@CHAOS_RUNS=$${CHAOS_RUNS:-1} $(DEVSTACK) exec -- go test -C e2e/chaos -count=1 -timeout=0 -parallel=64 -run='^TestChaos$$'

rewritechaos: $(DEVSTACK) ## kill and break the rewrite queue at every point, count at the provider: CHAOS_RUNS=1
	@CHAOS_RUNS=$${CHAOS_RUNS:-1} $(DEVSTACK) exec -- go test -C e2e/rewritechaos -count=1 -timeout=0 -parallel=4 -v -run='^Test'

outage: $(DEVSTACK) ## model, Perforce, mail, webhook down for OUTAGE=2m each, with and without breaker
	@OUTAGE=$${OUTAGE:-2m} $(DEVSTACK) exec -- go test -count=1 -timeout=0 -v -run='^TestOutage$$' ./e2e

check: test lint ## what CI checks: test, then lint

lint: $(BIN)/golangci-lint $(BIN)/sqlc $(BIN)/workflowcheck ## format, linters, generated code, go.mod
	$(BIN)/golangci-lint run
	$(BIN)/golangci-lint fmt --diff
	$(BIN)/workflowcheck ./workflows/...
	$(BIN)/sqlc diff
	go mod tidy -diff
	@$(MAKE) --no-print-directory deploycheck benchcheck vulncheck

deploycheck: $(BIN)/gotestsum ## what installs us elsewhere: image, compose file, units, manifest
	@mkdir -p build
	@cd tools/deploy && $(CURDIR)/$(BIN)/gotestsum --format=pkgname --hide-summary=skipped --jsonfile=$(CURDIR)/build/deploycheck.json -- .
	@go run ./tools/skips build/deploycheck.json

benchcheck: ## that the benchmarks in modules of their own still compile
	@$(PROGRESS) "checking the benchmarks" go vet -C redaction/bench ./...
	@go vet -C e2e/queuebench ./...
	@go test -C tools/bench ./...

vulncheck: $(BIN)/govulncheck ## known ones that the code reaches, where their database can be read
	@sh tools/govulncheck.sh $(BIN)/govulncheck ./...

bench: $(DEVSTACK) ## measure everything beside a rival or a floor: build/bench.json
	@go build -C tools/bench -o "$(CURDIR)/$(BIN)/bench" .
	@$(DEVSTACK) exec -- $(BIN)/bench

fmt: $(BIN)/golangci-lint ## format the code
	$(BIN)/golangci-lint fmt

generate: $(BIN)/sqlc ## write the generated code anew
	$(BIN)/sqlc generate

# All are static. A trigger's copy has a name that tells whose it is.
build: ## compile worker, starter and criticizer into build/bin
	@mkdir -p $(BIN)
	@$(PROGRESS) "building the commands" env CGO_ENABLED=0 go build -o $(BIN)/ ./worker ./starter
	@$(PROGRESS) "building criticizer" env CGO_ENABLED=0 go build -o $(BIN)/criticizer ./operator
	@cp $(BIN)/starter $(BIN)/criticizer-starter

man: build ## pages for man, of criticizer, into build/man
	@$(BIN)/criticizer man build/man
	@echo "man -l build/man/criticizer.1 shows the first"

clean: ## stop what runs and remove build/
	@if [ -x $(DEVSTACK) ]; then $(DEVSTACK) clean; fi
	@rm -rf build

$(BIN)/govulncheck: GOVULNCHECK_VERSION := v1.8.0
$(BIN)/govulncheck:
	@mkdir -p $(BIN)
	@$(PROGRESS) "building govulncheck" env GOBIN="$(CURDIR)/$(BIN)" go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

# The go command knows best whether it must be built again.
$(DEVSTACK):
	@mkdir -p $(BIN)
	@$(PROGRESS) "building devstack" env CGO_ENABLED=0 go build -buildvcs=false -o $@ ./tools/devstack

$(BIN)/golangci-lint: LINT_PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/sqlc: LINT_PACKAGE := github.com/sqlc-dev/sqlc/cmd/sqlc
$(BIN)/workflowcheck: LINT_PACKAGE := go.temporal.io/sdk/contrib/tools/workflowcheck
$(BIN)/gotestsum: LINT_PACKAGE := gotest.tools/gotestsum

$(BIN)/golangci-lint $(BIN)/sqlc $(BIN)/workflowcheck $(BIN)/gotestsum: tools/lint/go.mod
	@mkdir -p $(BIN)
	@$(PROGRESS) "building $(notdir $@)" go build -C tools/lint -o "$(CURDIR)/$@" $(LINT_PACKAGE)
