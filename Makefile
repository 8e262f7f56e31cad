# Two commands matter: `make demo` shows what difflens does, `make test` shows that it works.
# Each target sets up all it needs in .venv; nothing is installed outside this folder.
# ARGS goes to the program: make test ARGS="-k pairing", make bench ARGS=--quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
# What `make check` tests: rooms that need no framework, without what is marked long.
QUICK := tests/contracts tests/core tests/stats tests/measure tests/diffs tests/render

# The tests start thousands of processes: each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check quick test lint bench zoo slow search fuzz golden docs new sanitize clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      small checkpoints, compared; reports in demo/"
	@echo "make check     ruff, mypy and the quick tests: a minute, and no framework is installed"
	@echo "make quick     the quick tests alone"
	@echo "make test      all tests but the slow ones, on all processors: nine minutes on two"
	@echo "make lint      ruff and mypy"
	@echo "make bench     the figures of docs/benchmarks.md"
	@echo "make zoo       how right the diagnoses are, on labelled faults; ARGS=--help"
	@echo "make slow      the slow tests: full figures, large files; then make search"
	@echo "make search    the property tests on new random examples, more of them"
	@echo "make fuzz      200,000 mutated files"
	@echo "make golden    rewrite the golden outputs"
	@echo "make docs      rewrite what the pages show of the program"
	@echo "make new       format=, analysis=, renderer=, diagnosis= or command=NAME: its four files"
	@echo "make sanitize  the C kernel under address and undefined-behaviour sanitizers"
	@echo "make clean     remove what these made"

demo: $(VENV)/.installed
	$(BIN)/difflens demo --out demo

# Side by side: mypy has one thread, and takes as long as the tests where it has no cache yet.
check: $(VENV)/.lint $(VENV)/.check
	@$(MAKE) --no-print-directory --jobs=2 lint quick

quick: $(VENV)/.check
	DIFFLENS_QUICK=1 $(BIN)/python -m pytest -m "not slow and not long" -n auto --dist worksteal $(QUICK) $(ARGS)

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(ARGS)

zoo: $(VENV)/.test
	$(BIN)/python -m zoo $(ARGS)

slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow $(ARGS)
	$(MAKE) search

search: $(VENV)/.test
	DIFFLENS_SEARCH=1 $(BIN)/python -m pytest -m "hypothesis and not slow" $(ARGS)

fuzz: $(VENV)/.test
	DIFFLENS_FUZZ=200000 $(BIN)/python -m pytest -m slow tests/hostile -k "mutant" $(ARGS)

golden: $(VENV)/.test
	$(BIN)/python -m pytest tests/golden --update-golden $(ARGS)

docs: $(VENV)/.installed
	$(BIN)/python docs/update.py

new:
	@$(PYTHON) docs/new.py $(foreach kind,format analysis renderer diagnosis command,$(if $($(kind)),$(kind)=$($(kind))))

sanitize: $(VENV)/.test
	$(BIN)/python -m pytest tests/measure -k sanitizers $(ARGS)

clean:
	rm -rf $(VENV) build dist demo .bench src/difflens.egg-info src/difflens/measure/*/_*.so

# The stamp, not bin/python: a virtual environment without pip (its installation was interrupted)
# must be made again. --group needs pip 25.1.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or later is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1)"; \
		echo "name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.installed: pyproject.toml setup.py $(wildcard src/difflens/measure/*/*.[ch]) | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --group test
	$(BIN)/python -m pip install --quiet --no-deps bitsandbytes compressed-tensors silero-vad
	touch $@

# The peer of the spectra; it brings nothing that the tests have not.
$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group lint
	touch $@

$(VENV)/.check: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group check
	touch $@
