# Two commands for a fresh machine: `make demo` and `make test`. Both install what they need.
PY ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
EXTRA ?=
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: install demo test check accept bench wheel clean

install: $(STAMP) $(if $(EXTRA),extra)

# What training and serving run on. Tests train small models and start the router, so `make test` installs it;
# `make demo` does without.
HEAVY := $(VENV)/.heavy

$(HEAVY): $(STAMP) requirements/train.txt requirements/serve.txt
	grep '^torch==' requirements/train.txt | xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/train.txt -r requirements/serve.txt
	touch $@

$(STAMP): requirements/core.txt requirements/dev.txt requirements/templates.txt pyproject.toml
	test -x $(BIN)/python || $(PY) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/templates.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.PHONY: extra
extra: $(STAMP)
	grep '^torch==' requirements/$(EXTRA).txt | xargs -r $(BIN)/python -m pip install --quiet --disable-pip-version-check
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/$(EXTRA).txt

# An environment of verl's own, for HARNESS_VERL_PYTHON=.verl/bin/python; docs/scale_out.md.
.PHONY: verl
verl: requirements/verl.txt
	test -x .verl/bin/python || $(PY) -m venv .verl
	grep '^torch==' requirements/verl.txt | xargs .verl/bin/python -m pip install --quiet --disable-pip-version-check
	.verl/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/verl.txt

demo: $(STAMP)
	$(BIN)/harness demo

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check $(HEAVY)
	$(BIN)/python -m pytest -m "not accept"

accept: $(HEAVY)
	$(BIN)/python -m pytest -m accept --record tests/acceptance.json

bench: $(HEAVY)
	$(BIN)/python -m benchmarks.run

wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation -w dist .

clean:
	rm -rf build dist .mypy_cache .ruff_cache .hypothesis *.egg-info
