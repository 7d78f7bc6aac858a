# burnish: everything runs in .venv, which make builds from pyproject.toml and constraints.txt.
# Another interpreter: make PYTHON=/path/to/python3.12 test

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
RUNTIME := .venv/.runtime-stamp
DEV := .venv/.dev-stamp

.PHONY: help demo test test-services check bench ablations docs venv clean

help:
	@echo "make demo           run the built-in example and the ticket-routing example"
	@echo "make test           run the tests that need no service"
	@echo "make test-services  run the tests that need PostgreSQL, on one of their own"
	@echo "make check          formatting, lint, types and import contracts"
	@echo "make bench          measure the numbers burnish promises"
	@echo "make ablations      run the method without each of its parts, on simulated tasks"
	@echo "make docs           write docs/api.md and docs/guideline.html from the code and the pages"
	@echo "make venv           make .venv with the development tools"
	@echo "make clean          remove .venv, build results and caches (never runs/)"

demo: $(RUNTIME)
	$(BIN)/burnish --example skill-training
	rm -rf runs/demo
	$(BIN)/burnish train examples/ticket-routing/task.yaml --out-root runs/demo

test: $(DEV)
	$(BIN)/python -m pytest -n 2 -m "not services" $(ARGS)

test-services: $(DEV)
	scripts/services.sh $(BIN)/python -m pytest -n 2 -m services $(ARGS)

check: $(DEV)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(RUNTIME)
	$(BIN)/python bench/run.py

ablations: $(RUNTIME)
	$(BIN)/python bench/ablations.py $(ARGS)

docs: $(DEV)
	$(BIN)/python scripts/api_reference.py
	$(BIN)/python scripts/guideline.py

venv: $(DEV)

# pip is upgraded first: the pip that comes with Python 3.11 does not know dependency groups.
$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "burnish needs Python 3.11 or newer, and '$(PYTHON)' is not: try make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade pip hatchling editables
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME)
	$(PIP) --group dev
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find domain application infrastructure presentation tests bench examples -name __pycache__ -type d -prune \
		-exec rm -rf {} + 2>/dev/null || true
