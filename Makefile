# make demo    install into .venv and run the digits example on every target
# make test    install into .venv with the test tools; lint, types, tests
# make docs    rewrite docs/operators.md from the tables
# make fuzz    random graphs on every target against the reference for MINUTES=10, then damaged files for as long
# make conformance    the whole ONNX backend suite on every target; rewrites docs/conformance.md
#
# PYTHON=python3.12 chooses another interpreter for .venv, WORKERS=4 more test processes.

PYTHON ?= python3
WORKERS ?= 2
MINUTES ?= 10
VENV := .venv
# -P keeps the checkout itself off the module path, where its folders would be importable as ir, passes, ...
RUN := $(VENV)/bin/python -P
PIP := $(RUN) -m pip --disable-pip-version-check --quiet
# An editable install remembers where the checkout lies; the stamp's name does too, so that a moved one is installed anew.
PLACE := $(subst /,+,$(CURDIR))
INSTALLED := $(VENV)/irc$(PLACE)
INSTALLED_TEST := $(VENV)/irc-test$(PLACE)

.PHONY: help demo demo-train test lint types pytest docs fuzz conformance clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed -n '1,/^$$/p'
	@echo "other targets: demo-train lint types pytest clean"

demo: $(INSTALLED)
	@$(RUN) examples/digits/demo.py

demo-train: $(INSTALLED)
	@$(RUN) examples/digits/train.py

test: lint types pytest

lint: $(INSTALLED_TEST)
	@echo "== ruff"
	@$(RUN) -m ruff check .

types: $(INSTALLED_TEST)
	@echo "== mypy"
	@$(RUN) tests/run_mypy.py

pytest: $(INSTALLED_TEST)
	@echo "== pytest"
	@$(RUN) -m pytest -q -n $(WORKERS) --dist loadfile

docs: $(INSTALLED_TEST)
	@$(RUN) tests/operator_tables.py --write

fuzz: $(INSTALLED_TEST)
	@$(RUN) tests/fuzz/run.py --minutes $(MINUTES) --start $(or $(START),$(shell date +%s)); graphs=$$?; \
	$(RUN) tests/fuzz/files.py --minutes $(MINUTES) --start $(or $(START),$(shell date +%s)) && exit $$graphs

conformance: $(INSTALLED_TEST)
	@$(RUN) tests/conformance/run.py --jobs $(WORKERS) --write

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "error: no '$(PYTHON)' found; name a Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: irc needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1); name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "== creating $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "error: $(PYTHON) cannot create a virtual environment; on Debian and Ubuntu install python3-venv" >&2; exit 1; }

$(INSTALLED): pyproject.toml | $(VENV)/bin/python
	@echo "== installing irc and what it needs into $(VENV) (jax, mlx, onnxruntime, ...; a few minutes the first time)"
	@$(PIP) install --editable .
	@touch $@

$(INSTALLED_TEST): pyproject.toml | $(VENV)/bin/python
	@echo "== installing irc, what it needs and the test tools into $(VENV) (a few minutes the first time)"
	@$(PIP) install --editable '.[test]'
	@touch $@ $(INSTALLED)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
