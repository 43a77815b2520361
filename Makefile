# make demo   bring what the build needs, run the quick sweep
# make test   bring what the build needs, run the tests
# make setup  only bring what the build needs: cmake, a C++ compiler, make, libclang; without apt and root cmake and libclang alone
# make bench  the benchmarks
# make formats  docs/formats.md, written from the types that read and write documents
# make python  the Python package in an environment of its own, target/python, and its tests
# make wheel  the package as wheels, target/wheels: with HiGHS in it, and without C++; each tried with numpy alone
# make install  the command, optimized, into cargo's folder of programs
# make ci     everything that a change must pass

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Written by the set-up: where the tools are that it brought.
TOOLS := .tools/env
WITH_TOOLS := if [ -f $(TOOLS) ]; then . ./$(TOOLS); fi;

.PHONY: setup demo test bench formats python wheel install ci

setup:
	@.ci/setup

demo: setup
	@$(WITH_TOOLS) cargo run --quiet -- sweep quick

test: setup
	@$(WITH_TOOLS) cargo test

bench: setup
	@$(WITH_TOOLS) cargo bench -p apportion-benches

# Without HiGHS, which has no say in it; with the live scheduler, whose documents are among them. Written whole or not at all.
formats:
	@cargo run --quiet --no-default-features --features live -p apportion-cli -- schema --markdown >docs/formats.new
	@mv docs/formats.new docs/formats.md

python: setup
	@$(WITH_TOOLS) crates/python/build test

wheel: setup
	@$(WITH_TOOLS) crates/python/build wheel

install: setup
	@$(WITH_TOOLS) cargo install --locked --path crates/cli

ci:
	@.ci/run
