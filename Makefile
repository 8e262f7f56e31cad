# Two commands matter: `make demo` shows what difflens does, `make test` shows that it works.
# Each target sets up all it needs in .venv; nothing is installed outside this folder.
# ARGS goes to the program: make test ARGS="-k pairing", make bench ARGS=--quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0

.PHONY: help demo test lint bench zoo slow fuzz golden docs new sanitize clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      small checkpoints, compared; reports in demo/"
	@echo "make test      all tests but the slow ones"
	@echo "make lint      ruff and mypy"
	@echo "make bench     the figures of the README"
	@echo "make zoo       how right the diagnoses are, on labelled faults; ARGS=--help"
	@echo "make slow      the slow tests: full figures, large files"
	@echo "make fuzz      200,000 mutated files"
	@echo "make golden    rewrite the golden outputs"
	@echo "make docs      rewrite what the pages show of the program"
	@echo "make new       format=, analysis=, renderer= or diagnosis=NAME: the four files of a plug-in"
	@echo "make sanitize  the C kernel under address and undefined-behaviour sanitizers"
	@echo "make clean     remove what these made"

demo: $(VENV)/.installed
	$(BIN)/difflens demo --out demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

lint: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(ARGS)

zoo: $(VENV)/.test
	$(BIN)/python -m zoo $(ARGS)

slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow $(ARGS)

fuzz: $(VENV)/.test
	DIFFLENS_FUZZ=200000 $(BIN)/python -m pytest -m slow tests/hostile -k "mutant" $(ARGS)

golden: $(VENV)/.test
	$(BIN)/python -m pytest tests/golden --update-golden $(ARGS)

docs: $(VENV)/.installed
	$(BIN)/python docs/update.py

new:
	@$(PYTHON) docs/new.py $(foreach kind,format analysis renderer diagnosis,$(if $($(kind)),$(kind)=$($(kind))))

sanitize: $(VENV)/.test
	$(BIN)/python -m pytest tests/kernel/test_sanitizers.py $(ARGS)

clean:
	rm -rf $(VENV) build dist demo .bench src/difflens.egg-info src/difflens/kernel/_scan*.so

# The stamp, not bin/python: a virtual environment without pip (its installation was interrupted)
# must be made again. --group needs pip 25.1.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or later is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1)"; \
		echo "name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.installed: pyproject.toml setup.py $(wildcard src/difflens/kernel/*.[ch]) | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --group test
	$(BIN)/python -m pip install --quiet --no-deps bitsandbytes compressed-tensors
	touch $@

# The peer of the spectra; it brings nothing that the tests have not.
$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group lint
	touch $@
