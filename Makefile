# `make demo` and `make test` do all set-up themselves; nothing but Python >= 3.11 is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEV := $(VENV)/ready-dev
INSTALL = $(BIN)/pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test quick docs release kernels lint style format clean

demo: $(READY)
	$(BIN)/musictx demo

# a process for each core, with one thread; neighbours share what a file sets up; what Python compiles is kept for the
# next run, whatever the shell says: it is half of the start
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist worksteal

# what depends on the processor: precisions, cells and kernels, and what is chosen by what it can do. Triton's
# interpreter computes with numpy
DEVICE := tests/test_system.py tests/model --ignore=tests/model/test_attention_triton.py tests/commands/test_check.py \
  $(addprefix tests/training/test_, accumulate.py optimizer.py training.py) tests/studies/test_compute.py \
  $(addprefix tests/generate/test_, engine.py guidance.py model.py no_wait.py)
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2

test: lint
	$(PYTEST)
	@if grep -qs avx512 /proc/cpuinfo; \
	  then echo 'once more what depends on the processor, which now has no more than AVX2'; $(AVX2) $(PYTEST) $(DEVICE); \
	  else echo 'no second run as with AVX2 alone: this processor is not one that has more'; fi

# while you work: lint, and each test up to where it would start a process or train
quick: lint
	$(PYTEST) --quick

# the pages of docs/ and the reference as a site: outputs/docs/site/index.html
docs: $(DEV)
	$(BIN)/python tools/website.py

# sdist and wheel of what is committed, in dist/; .github/workflows/release.yml installs and tries them
release: $(DEV)
	@test -z "$$(git status --porcelain)" || { echo 'error: commit or remove what git status shows'; exit 2; }
	$(BIN)/pip install --quiet --disable-pip-version-check twine -c constraints.txt
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# the GPU kernels, compiled for every card on any machine: registers, spills, shared memory
kernels: $(DEV)
	$(BIN)/python benchmarks/kernels.py

# not beside the tests, from which it would take a core, but with several processes of its own
lint: style
	$(BIN)/mypy -n auto

# deptry: is what is imported declared? First for the package; then for scripts and tests, which also import dev, and
# their neighbours by bare name
style: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deptry .
	$(BIN)/deptry . benchmarks studies tools tests tests/*/ --exclude '\.?venv|build|outputs|musictx' --ignore DEP002,DEP004

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist outputs/demo outputs/docs outputs/stores

# what the demo needs; remade when a pin or a dependency changes. Python compiles the modules that a command imports,
# which is few of them; hatchling, which makes the package, is installed once and not for each install
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) torch==2.13.0 hatchling editables
	$(INSTALL) --no-build-isolation -e '.[chorales]'
	touch $@

# what else tests and tools need
$(DEV): $(READY)
	$(INSTALL) --no-build-isolation -e '.[dev]'
	touch $@
