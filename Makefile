# Every target sets up what it needs: a fresh machine has Python 3.11+, git and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

# vendors' compilers that tests use where they are: environments of plug-ins of the same name
TOOLCHAINS ?= $(patsubst src/opscope/plugins/%/environment.py,%,$(wildcard src/opscope/plugins/*/environment.py))
MADE := .cache/opscope/environments

.PHONY: setup toolchains demo test test-slow lint types check format bench docs web screenshots clean

setup: $(STAMP)

$(STAMP): pyproject.toml src/opscope/simulation/core.c
	@echo "setting up $(VENV): some minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,fleet,htp,mcp,mlir,optimize]'
	touch $(STAMP)

# some hundred megabytes, in .cache; made once, and again where their description changes
toolchains: $(TOOLCHAINS:%=$(MADE)/%/environment.json)

$(MADE)/%/environment.json: src/opscope/plugins/%/manifest.py src/opscope/plugins/%/environment.py | setup
	XDG_CACHE_HOME=$(CURDIR)/.cache $(BIN)/opscope setup $*

demo: setup
	mkdir -p demo
	$(BIN)/opscope zoo bert-base --layers 2 --batch 8 --seq 128 --precision f16 -o demo/bert.onnx
	$(BIN)/opscope profile demo/bert.onnx --target aic100-std --cores 2 -o demo/bert.run

test: setup
	$(BIN)/pytest -n 2

test-slow: setup
	$(BIN)/pytest -n 2 -m slow
	$(BIN)/pytest -n 2 tests/property --hypothesis-profile thorough

lint: setup
	$(BIN)/ruff check src tests bench tools
	$(BIN)/ruff format --check src tests bench tools

types: setup
	$(BIN)/mypy

check: lint types test

format: setup
	$(BIN)/ruff format src tests bench tools
	$(BIN)/ruff check --fix src tests bench tools

bench: setup
	$(BIN)/python bench/run.py

# the site, in site/; every warning is an error
docs: setup
	$(BIN)/sphinx-build -q -W --keep-going -b dirhtml docs site

# script and style of the pages, from web/ into the package; needs Node 20, which users of the package do not
web: setup
	$(BIN)/python tools/page_schema.py > web/contract.schema.json
	cd web && npm ci --silent && npm run --silent types && npm run --silent check && npm run --silent test && npm run --silent build

# the pictures of docs/page.md and docs/gallery.md
screenshots: setup
	$(BIN)/python tools/screenshots.py
	$(BIN)/python tools/gallery.py

clean:
	rm -rf $(VENV) demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build src/opscope/simulation/*.so
