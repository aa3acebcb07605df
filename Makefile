# Errand's build. `make` alone lists what there is.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Tools are built from the Go module proxy at these versions into .bin.
BUF_VERSION                     := v1.75.0
PROTOC_GEN_GO_VERSION           := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION      := v1.6.2
PROTOC_GEN_GRPC_GATEWAY_VERSION := v2.33.0
GOLANGCI_LINT_VERSION           := v2.15.0

# What a user may set.
FUZZTIME      ?= 30s
TEST_FLAGS    ?=
DEV_FLAGS     ?=
# The Postgres of root runs as another user, whom the folders of root keep out.
CLUSTER_DIR   ?= $(if $(filter 0,$(shell id -u)),/tmp/errand-cluster,$(BUILD)/cluster)
CLUSTER_HTTP  ?= 127.0.0.1:8080
CLUSTER_GRPC  ?= 127.0.0.1:9090
GATEWAYS      ?= 2
TASKSTORES    ?= 2
NOTIFIERS     ?= 2
EXECUTORS     ?= 2
RESTART_EVERY ?=
AGENTS        ?= services/agents/scripted/agents.yaml
DURATION      ?= 2m
SEED          ?=
CHAOS_FLAGS   ?=
AGAINST       ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

MODULES  := proto pkg services
PACKAGES := $(MODULES:%=./%/...)
# An example is a module outside the workspace, as a copy of it would be.
EXAMPLES := $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod))
SERVICES := gateway taskstore executor notifier

TOOLS := .bin
BUILD := .build
BUF   := $(TOOLS)/buf
LINT  := $(TOOLS)/golangci-lint

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Run and build

.PHONY: dev
dev: bin/errand ## Build errand and run all services in one process (DEV_FLAGS="--data-dir DIR …")
	bin/errand dev $(DEV_FLAGS)

CLUSTER_PROGRAMS := $(SERVICES:%=bin/errand-%) bin/nats-server bin/cluster

.PHONY: cluster
cluster: $(CLUSTER_PROGRAMS) ## Run each service as processes of its own until Ctrl-C (GATEWAYS=2 RESTART_EVERY=3s CLUSTER_DIR=DIR …)
	@exec bin/cluster up --dir $(CLUSTER_DIR) --agents $(AGENTS) --http $(CLUSTER_HTTP) --grpc $(CLUSTER_GRPC) \
		--gateways $(GATEWAYS) --taskstores $(TASKSTORES) --notifiers $(NOTIFIERS) --executors $(EXECUTORS) \
		$(if $(RESTART_EVERY),--restart-every $(RESTART_EVERY))

.PHONY: cluster-down
cluster-down: bin/cluster ## End the cluster in CLUSTER_DIR, also one whose launcher was killed
	@bin/cluster down --dir $(CLUSTER_DIR)

.PHONY: build
build: bin/errand $(SERVICES:%=bin/errand-%) ## Build all binaries into bin/

# The go command knows better than make whether a binary is up to date.
.PHONY: bin/errand $(SERVICES:%=bin/errand-%) bin/cluster bin/nats-server bin/chaos bin/chaosagent
bin/errand:
	@echo "==> $@"
	@go build -trimpath -o $@ ./services/cmd/errand

$(SERVICES:%=bin/errand-%): bin/errand-%:
	@echo "==> $@"
	@go build -trimpath -o $@ ./services/cmd/$*

bin/cluster bin/chaos bin/chaosagent: bin/%:
	@echo "==> $@"
	@go build -trimpath -o $@ ./services/e2e/cmd/$*

# The version that tests and `errand dev` embed.
bin/nats-server:
	@echo "==> $@"
	@cd services && go build -trimpath -o ../$@ github.com/nats-io/nats-server/v2

##@ Test

WITH_POSTGRES := deploy/postgres/with-test-postgres

.PHONY: test
test: ## Run all tests; Postgres is installed where missing (TEST_FLAGS="-run Name …")
	@echo "==> go test $(EXAMPLES) $(PACKAGES)"
	@for example in $(EXAMPLES); do (cd "$$example" && GOWORK=off go test $(TEST_FLAGS) ./...); done
	@$(WITH_POSTGRES) go test $(TEST_FLAGS) $(PACKAGES)

.PHONY: race
race: ## Run all tests with the race detector
	@echo "==> go test -race $(EXAMPLES) $(PACKAGES)"
	@for example in $(EXAMPLES); do (cd "$$example" && GOWORK=off go test -race $(TEST_FLAGS) ./...); done
	@$(WITH_POSTGRES) go test -race $(TEST_FLAGS) $(PACKAGES)

.PHONY: chaos
chaos: $(CLUSTER_PROGRAMS) bin/chaos bin/chaosagent ## Kill, pause and cut off what serves a load, and check that nothing is lost (DURATION=20m SEED=1 CHAOS_FLAGS=…)
	@exec bin/chaos --duration $(DURATION) $(if $(SEED),--seed $(SEED)) $(CHAOS_FLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME (30s)
	@grep -roE --include='*_test.go' '^func Fuzz[[:alnum:]_]*' $(MODULES) | sort | \
	while IFS=: read -r file function; do \
		name=$${function#func }; \
		echo "==> $$name in $${file%/*}"; \
		go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "./$${file%/*}" </dev/null; \
	done

##@ Check

.PHONY: lint
lint: $(LINT) $(BUILD)/proto/errand.binpb $(BUF) ## Lint the Go code, the imports and the protocol buffer sources
	@echo "==> buf lint"
	@$(BUF) lint $(BUILD)/proto/errand.binpb
	@echo "==> golangci-lint run $(PACKAGES)"
	@$(LINT) run --allow-parallel-runners $(PACKAGES)
	@for example in $(EXAMPLES); do (cd "$$example" && GOWORK=off $(CURDIR)/$(LINT) run --allow-parallel-runners ./...); done
	@echo "==> import rules"
	@go test -count=1 ./services/internal/archtest

.PHONY: fresh
fresh: tools-generate ## Check that the committed generated code is what `make generate` writes
	@echo "==> generated code is fresh"
	@rm -rf $(BUILD)/fresh
	@$(BUF) generate --output $(BUILD)/fresh
	@$(BUF) generate --output $(BUILD)/fresh --template buf.gen.a2agateway.yaml
	@diff -r $(BUILD)/fresh/proto/gen proto/gen || { echo "proto/gen is stale: run 'make generate' and commit"; exit 1; }

.PHONY: tidy
tidy: ## Check that each go.mod is tidy
	@for module in $(MODULES) $(EXAMPLES); do \
		echo "==> go mod tidy -diff in $$module"; \
		(cd "$$module" && GOWORK=off go mod tidy -diff); \
	done

# Contracts are promised from the first release on.
.PHONY: breaking
breaking: $(BUILD)/proto/errand.binpb $(BUF) ## Compare the protocol buffer sources with the last release (AGAINST=REF)
ifeq ($(AGAINST),)
	@echo "==> buf breaking: no release yet, nothing to compare with"
else
	@echo "==> buf breaking against $(AGAINST)"
	@rm -rf $(BUILD)/against && mkdir -p $(BUILD)/against
	@git archive $(AGAINST) proto/errand | tar -x -C $(BUILD)/against
	@go run ./proto/internal/protoimage -root $(BUILD)/against/proto -out $(BUILD)/against
	@$(BUF) breaking $(BUILD)/proto/errand.binpb --against $(BUILD)/against/errand.binpb
endif

.PHONY: verify
verify: fresh tidy breaking lint ## All checks that run no test: fresh, tidy, breaking, lint

##@ Generate

.PHONY: generate
generate: tools-generate ## Generate proto/gen: our contracts, and the HTTP+JSON gateway of A2AService
	@echo "==> buf generate"
	@$(BUF) generate
	@$(BUF) generate --template buf.gen.a2agateway.yaml

.PHONY: tools-generate
tools-generate: $(BUF) $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc $(TOOLS)/protoc-gen-grpc-gateway $(BUILD)/proto/errand.binpb

# Both images, a2a.binpb too, are written at once.
.PHONY: $(BUILD)/proto/errand.binpb
$(BUILD)/proto/errand.binpb:
	@echo "==> compile proto/errand"
	@go run ./proto/internal/protoimage -root proto -out $(@D)

##@ Housekeeping

.PHONY: clean
clean: ## Remove what was built; the tools in .bin stay
	rm -rf bin $(BUILD)

# tool NAME PACKAGE VERSION: a tool is rebuilt when its version changes.
define tool
$(TOOLS)/$(1): $(TOOLS)/.versions/$(1)@$(3)

$(TOOLS)/.versions/$(1)@$(3):
	@echo "==> build $(1) $(3)"
	@mkdir -p $$(@D)
	@GOBIN=$$(CURDIR)/$(TOOLS) go install $(2)@$(3)
	@rm -f $$(@D)/$(1)@*
	@touch $$@ $(TOOLS)/$(1)
endef

$(eval $(call tool,buf,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION)))
$(eval $(call tool,protoc-gen-go,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION)))
$(eval $(call tool,protoc-gen-go-grpc,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(PROTOC_GEN_GO_GRPC_VERSION)))
$(eval $(call tool,protoc-gen-grpc-gateway,github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway,$(PROTOC_GEN_GRPC_GATEWAY_VERSION)))
$(eval $(call tool,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION)))
