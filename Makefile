# `make demo` and `make test` do all set-up themselves; nothing but Python >= 3.11 is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test quick docs release kernels lint format clean

demo: $(READY)
	$(BIN)/musictx demo

# one thread each; what Python compiles is kept for the next run, whatever the shell says: it is half of the start
WITH := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

test: lint
	$(WITH) $(BIN)/pytest -n auto --dist worksteal # one process a core; neighbours share what a file sets up

# while you work: lint, and each test up to where it would start a process or train
quick: lint
	$(WITH) $(BIN)/pytest -n auto --dist worksteal --quick

# the reference out of the docstrings: outputs/docs/index.html; pdoc's warnings are about types, which mypy checks
docs: $(READY)
	$(BIN)/python -W ignore tools/reference.py

# sdist and wheel of what is committed, in dist/; .github/workflows/release.yml installs and tries them
release: $(READY)
	@test -z "$$(git status --porcelain)" || { echo 'error: commit or remove what git status shows'; exit 2; }
	$(BIN)/pip install --quiet --disable-pip-version-check twine -c constraints.txt
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# the GPU kernels, compiled for every card on any machine: registers, spills, shared memory
kernels: $(READY)
	$(BIN)/python benchmarks/kernels.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist outputs/demo outputs/docs outputs/stores

# remade when a pin or a dependency changes; Python compiles the modules that a command imports, which is few of them
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check torch==2.13.0 -c constraints.txt
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	touch $@
