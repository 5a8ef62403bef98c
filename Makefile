# Fairdrop. Two commands are enough: `make demo` runs a whole sale, `make test` proves it.
# ARGS passes options on: make demo ARGS="--exit --report out.json", make test ARGS="-k ledger".
# PYTHON names the interpreter that .venv is made with (3.11 to 3.14).

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

.DEFAULT_GOAL := help
.SUFFIXES:
# Another environment's packages must not be seen by ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.PHONY: help demo test check lint types imports format bench lock clean runtime dev

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

demo: runtime ## a whole sale in the terminal: ARGS="--buyers 20000 --units 5000 --rate 2000"
	@$(BIN)/fairdrop demo $(ARGS)

test: dev ## all tests, two at a time, in random order: ARGS="-k ledger -x"
	@.ci/chromium
	@$(BIN)/pytest --numprocesses=2 --dist=loadfile $(ARGS)

check: lint types imports test ## everything that has to hold before a change lands

lint: dev ## ruff: rules and format
	@status=0; $(BIN)/ruff check . || status=1; $(BIN)/ruff format --check . || status=1; exit $$status

types: dev ## mypy, strict
	@$(BIN)/mypy src tests examples .ci/install.py $(if $(wildcard benchmarks/*.py),benchmarks)

imports: dev ## the direction of imports that ARCHITECTURE.md draws
	@$(BIN)/lint-imports --no-logo

format: dev ## put the code into shape
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: dev ## every benchmark, one JSON object each: ARGS="--quick"
	@set -e; for file in $$(grep -l __main__ benchmarks/*.py); do \
		echo "$$file" >&2; $(BIN)/python "$$file" $(ARGS); done

# The locks hold hashes of the public files for every platform, and no address.
LOCK := $(BIN)/uv --no-config --system-certs pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: dev ## write requirements/*.txt anew from pyproject.toml: ARGS="--upgrade" takes newer releases
	@$(LOCK) $(ARGS) pyproject.toml -o requirements/runtime.txt
	@$(LOCK) $(ARGS) --group build -c requirements/runtime.txt -o requirements/build.txt
	@$(LOCK) $(ARGS) pyproject.toml --group dev -c requirements/runtime.txt -c requirements/build.txt \
		-o requirements/dev.txt
	@$(MAKE) --no-print-directory dev

clean: ## remove the environment and every cache, never data
	@rm -rf .venv .venv.lock build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks .ci -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

runtime dev:
	@command -v $(PYTHON) >/dev/null 2>&1 || \
		{ echo "Fairdrop needs Python 3.11 to 3.14; there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) .ci/install.py $@
