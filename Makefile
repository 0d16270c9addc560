# Every target sets up what it needs: a fresh machine has Python 3.11+, git and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test test-slow lint types check format bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml src/opscope/device/core.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,htp]'
	touch $(STAMP)

demo: setup
	mkdir -p demo
	$(BIN)/opscope zoo kws-cnn --precision int8 -o demo/kws.tflite
	$(BIN)/opscope report demo/kws.tflite --target max32690-cm4
	$(BIN)/opscope report demo/kws.tflite --target max32690-cm4 --format html -o demo/report.html

test: setup
	$(BIN)/pytest -n 2

test-slow: setup
	$(BIN)/pytest -n 2 -m slow

lint: setup
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench

types: setup
	$(BIN)/mypy

check: lint types test

format: setup
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

bench: setup
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build src/opscope/device/*.so
