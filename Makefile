# Two commands matter: `make demo` shows what difflens does, `make test` shows that it works.
# Each sets up all it needs in .venv; nothing is installed outside this folder.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0

.PHONY: demo test lint bench slow fuzz golden sanitize clean

demo: $(VENV)/.installed
	$(BIN)/difflens demo --out demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

lint: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/python -m bench $(ARGS)

slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow $(ARGS)

golden: $(VENV)/.test
	$(BIN)/python -m pytest tests/golden --update-golden

sanitize: $(VENV)/.test
	$(BIN)/python -m pytest tests/kernel/test_sanitizers.py

clean:
	rm -rf $(VENV) build dist demo .bench

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml setup.py $(wildcard src/difflens/kernel/*.[ch]) | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/pip install --quiet --group test
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/pip install --quiet --group lint
	touch $@
