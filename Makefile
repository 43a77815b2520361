# make demo   bring what the build needs, run the quick sweep
# make test   bring what the build needs, run the tests
# make setup  only bring what the build needs: cmake, a C++ compiler, make, libclang
# make bench  the benchmarks
# make formats  docs/formats.md, written from the types that read and write documents
# make install  the command, optimized, into cargo's folder of programs
# make ci     everything that a change must pass

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Written by the set-up: where the tools are that it brought.
TOOLS := .tools/env
WITH_TOOLS := if [ -f $(TOOLS) ]; then . ./$(TOOLS); fi;

.PHONY: setup demo test bench formats install ci

setup:
	@.ci/setup

demo: setup
	@$(WITH_TOOLS) cargo run --quiet -- sweep quick

test: setup
	@$(WITH_TOOLS) cargo test

bench: setup
	@$(WITH_TOOLS) cargo bench -p apportion-benches

# Without HiGHS, which has no say in it; with training, whose document is among them. Written whole or not at all.
formats:
	@cargo run --quiet --no-default-features --features train -p apportion-cli -- schema --markdown >docs/formats.new
	@mv docs/formats.new docs/formats.md

install: setup
	@$(WITH_TOOLS) cargo install --locked --path crates/cli

ci:
	@.ci/run
