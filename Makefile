# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench reproduce seeds mutants docs notebooks figures clean
.PHONY: fuzz kill fuzz-server limits-server kill-server kill-cluster

demo: .venv/plot
	$(BIN)/python examples/demo.py

test: .venv/test .venv/browser lint
	$(BIN)/python -m pytest -n 2 --dist worksteal # a file stays with one process, which compiles its kernels once

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/bench
	$(BIN)/python -m bench $(if $(DATA),--data $(DATA)) $(ARGS)

reproduce: .venv/test
	$(BIN)/python -m pytest -m reproduce --data "$(DATA)"

SEEDS ?= 30
seeds: .venv/test
	$(BIN)/python -m bench.seeds --seeds $(SEEDS) -n 2 --dist worksteal $(ARGS)

fuzz: .venv/test
	$(BIN)/python -m bench.fuzz $(ARGS)

kill: .venv/test
	$(BIN)/python -m bench.kill $(ARGS)

fuzz-server: .venv/test
	$(BIN)/python -m bench.serve_fuzz $(ARGS)

limits-server: .venv/test
	$(BIN)/python -m bench.serve_limits $(ARGS)

kill-server: .venv/test
	$(BIN)/python -m bench.serve_kill $(ARGS)
	$(BIN)/python -m bench.serve_retries

kill-cluster: .venv/test
	$(BIN)/python -m bench.cluster_kill $(ARGS)

mutants: .venv/test
	$(BIN)/python -m bench.mutants $(ARGS)

figures: .venv/test
	$(BIN)/python -m docs.pages $(ARGS)

docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -j auto $(ARGS) docs build/site

notebooks: .venv/docs
	$(BIN)/python -m docs.notebooks $(ARGS)

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The browser of tests/test_serve_page.py, tried once: where it cannot be installed, its tests are skipped.
APT := DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20

.venv/browser: | .venv/bin/python
	@command -v chromium || command -v chromium-browser \
	|| { test "$$(id -u)" = 0 && $(APT) update && $(APT) install --yes --no-install-recommends chromium; } \
	|| echo "no Chromium, and it cannot be installed here: the tests of the server's page will be skipped"
	@touch $@

.venv/%: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist docs/reference/api docs/reference/commands
	find . -name __pycache__ -prune -exec rm -rf {} +
