# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench reproduce fuzz kill figures clean

demo: .venv/plot
	$(BIN)/python examples/demo.py

test: .venv/test lint
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

fuzz: .venv/test
	$(BIN)/python -m bench.fuzz $(ARGS)

kill: .venv/test
	$(BIN)/python -m bench.kill $(ARGS)

figures: .venv/plot
	$(BIN)/python examples/figures.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/%: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist
	find . -name __pycache__ -prune -exec rm -rf {} +
