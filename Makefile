# All targets use a virtual environment, which is created when it is needed.
#   make demo PYTHON=python3.12 VENV=/tmp/venv     # another interpreter, another folder

PYTHON ?= python3
VENV ?= .venv

# Sentences and output folder of `make demo`.
DEMO := runs/demo
DEMO_SENTENCES := "the company said it will sell its stake" \
    "investors who bought the shares last year lost a lot of money" "He didn't go home."

# The tests use exactly this version of PyTorch, so that pip selects a CPU build if there is one. With
# a lower bound it would select the newest version, with several GB of CUDA packages.
TORCH ?= torch==2.13.0

# Number of test processes. The tests of a file run in the same process, because they share models.
# Files run in alphabetical order: ordered by number of tests, files with one long test would be last.
# Each process has one thread, because more threads would compete for the cores.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
PYTEST = $(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# Tests of numerical results, which may depend on the processor and on versions of libraries.
NUMERICAL := compact convert exporting models onlstm recurrence utils docs/test_gallery.py examples/test_language_modeling.py \
    examples/test_init_from.py training/test_optimizers.py training/test_cross_entropy.py training/test_resume.py
# Backend and variables that select the kernels of other processors, separated by commas. With
# ONEDNN_MAX_CPU_ISA=AVX2 TensorFlow crashes in float16 products, so files with float16 are skipped.
KERNELS ?= tensorflow,XLA_FLAGS=--xla_cpu_max_isa=AVX2,TF_ENABLE_ONEDNN_OPTS=0 tensorflow,ONEDNN_MAX_CPU_ISA=AVX2 \
    jax,XLA_FLAGS=--xla_cpu_max_isa=AVX2 torch,ATEN_CPU_CAPABILITY=avx2,ONEDNN_MAX_CPU_ISA=AVX2
THREADS ?= 1 2

# Runs of `make fuzz`: NAME of tests/fuzz_NAME.py, backend, number of cases. FUZZ_SEED selects the cases.
FUZZ_SEED ?= 1
FUZZ ?= files:tensorflow:3000 runs:tensorflow:6 recurrence:tensorflow:120 recurrence:jax:360 recurrence:torch:1000
FUZZ_RUN := runs/fuzz

# Output folders of `make docs` and `make web`, and the folder of the npm packages.
SITE := site
WEB := runs/web
JAVASCRIPT := export/javascript
NPM_IS_THERE := command -v npm >/dev/null && npm ping --fetch-timeout 20000 --fetch-retries 0 >/dev/null 2>&1

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PYTHONUNBUFFERED := 1
# Suppresses start-up messages of TensorFlow.
export TF_CPP_MIN_LOG_LEVEL ?= 2

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check test-jax test-torch test-numerical test-portable check-gpu fuzz lint format bench docs web site clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed-png ## parse three sentences and draw their trees into runs/demo
	@mkdir -p $(DEMO)
	@$(BIN)/keras-onlstm parse --format pretty $(DEMO_SENTENCES)
	@echo
	@echo "Pictures of these trees:"
	@$(BIN)/keras-onlstm parse --format html --output $(DEMO)/trees.html $(DEMO_SENTENCES)
	@$(BIN)/keras-onlstm parse --format svg --output $(DEMO) $(DEMO_SENTENCES)
	@echo
	@echo "Try next:"
	@echo '  $(BIN)/keras-onlstm parse --format pretty "your sentence"'
	@echo '  $(BIN)/keras-onlstm generate the company said'
	@echo '  $(BIN)/keras-onlstm parse --format svg "prices fell" > tree.svg'

test: $(VENV)/.installed-test ## run all tests, including doctests and code in the documentation
	$(PYTEST)

check: $(VENV)/.installed-dev lint test test-jax test-torch docs ## run all checks that a change must pass

test-jax: $(VENV)/.installed-dev ## run the tests on JAX
	KERAS_BACKEND=jax $(PYTEST) -m "not keras_free"

test-torch: $(VENV)/.installed-dev ## run the tests on PyTorch
	KERAS_BACKEND=torch $(PYTEST) -m "not keras_free"

test-numerical: $(VENV)/.installed-dev ## run the tests of numerical results on KERAS_BACKEND
	$(PYTEST) $(NUMERICAL:%=tests/%)

test-portable: $(VENV)/.installed-dev ## run them with the kernels of other processors, on one and two threads
	@set -e; for kernels in $(KERNELS); do for threads in $(THREADS); do \
	    files="$(NUMERICAL:%=tests/%)"; \
	    case $$kernels in tensorflow,ONEDNN*) files=$$(grep -rL float16 --include 'test_*.py' $$files);; esac; \
	    settings="KERAS_BACKEND=$$(echo $$kernels | tr , ' ') OMP_NUM_THREADS=$$threads NPROC=$$threads"; \
	    settings="$$settings TF_NUM_INTRAOP_THREADS=$$threads TF_NUM_INTEROP_THREADS=$$threads"; \
	    echo "--- $$settings"; \
	    env $$settings $(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(PYTEST_ARGS) $$files; \
	done; done

check-gpu: $(VENV)/.installed-dev ## run the tests that matter on a GPU; fails without a GPU
	$(BIN)/python tests/check_gpu.py

fuzz: $(VENV)/.installed-dev ## test corrupted files, random options and killed runs for five minutes
	mkdir -p $(FUZZ_RUN)
	printf '%s\n' $(FUZZ) | OMP_NUM_THREADS=1 xargs -P 2 -I '{}' bash -c 'IFS=: read -r name backend count <<<"{}"; \
	    log="$(FUZZ_RUN)/$$name-$$backend.log"; status=0; \
	    KERAS_BACKEND=$$backend $(BIN)/python tests/fuzz_$$name.py --seed $(FUZZ_SEED) --count $$count \
	        >"$$log" 2>&1 || status=$$?; \
	    echo "$$name, $$backend: $$(tail -n 1 "$$log")"; exit $$status'

lint: $(VENV)/.installed-dev ## check style, format, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/.installed-dev ## fix style and format where possible
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev ## run the benchmarks into runs/benchmarks (BENCH_ARGS=--help)
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

docs: $(VENV)/.installed-docs ## build the documentation into site/, with the parser page in site/parser/
	@rm -rf $(SITE)/parser
	@if { test -d $(JAVASCRIPT)/node_modules || { $(NPM_IS_THERE); }; } && $(MAKE) --no-print-directory $(JAVASCRIPT)/node_modules; \
	    then $(BIN)/python web/build.py --output $(SITE)/parser --documentation ../index.html; \
	    else echo "Skipped the parser page: it needs npm and access to its registry."; fi
	KERAS_BACKEND=tensorflow $(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet --jobs 2 \
	    $$(test ! -d $(SITE)/parser || echo --tag page) docs $(SITE)

site: $(VENV)/.installed-docs ## serve both at http://127.0.0.1:8000/; runs `make docs` if needed
	@test -f $(SITE)/index.html || $(MAKE) --no-print-directory docs
	$(BIN)/python web/serve.py $(SITE)

web: $(VENV)/.installed-onnx $(JAVASCRIPT)/node_modules ## build only the parser page into runs/web
	$(BIN)/python web/build.py --output $(WEB)

clean: ## remove build results, but not the environment and runs/
	rm -rf build dist $(SITE) jupyter_execute *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# Installs the package with an extra of setup.cfg; repeated when the dependencies change.
$(VENV)/.installed-%: setup.cfg pyproject.toml | $(BIN)/python
	@echo "Installing the package with the extra '$*' and all dependencies. This takes a minute or two."
	@$(PIP) install --quiet --editable '.[$*]' $(if $(filter dev,$*),'$(TORCH)')
	@touch $@

$(JAVASCRIPT)/node_modules: $(JAVASCRIPT)/package.json
	@command -v npm >/dev/null || \
	    { echo "npm is not installed. Install Node 20 or later (on Debian: apt install nodejs npm)." >&2; exit 1; }
	npm install --prefix $(JAVASCRIPT) --no-audit --no-fund
	@touch $@

$(BIN)/python:
	@command -v '$(PYTHON)' >/dev/null || \
	    { echo "'$(PYTHON)' is not installed. Choose Python 3.11 or later: make PYTHON=..." >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "'$(PYTHON)' is too old. Choose Python 3.11 or later: make PYTHON=..." >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "'$(PYTHON)' has no venv module (on Debian: apt install python3-venv)" >&2; exit 1; }
	@echo "Creating a virtual environment in $(VENV)."
	@'$(PYTHON)' -m venv '$(VENV)'
