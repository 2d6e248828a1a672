PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
PYTEST_ARGS ?=
TRACE ?= build/demo-trace.jsonl

BIN := $(VENV)/bin
# One stamp for what a user runs, one for what a developer needs on top (torch too): a second call does nothing.
USER_STAMP := $(VENV)/.installed-user
DEV_STAMP := $(VENV)/.installed-dev
PACKAGING := pyproject.toml setup.py constraints.txt

.PHONY: install demo test lint schema proof bench clean integration-lmcache integration-vllm integration-sglang
.DEFAULT_GOAL := install

install: $(DEV_STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("hitproof needs Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(USER_STAMP): $(PACKAGING) | $(BIN)/python
	$(BIN)/python -m pip install $(PIP_ARGS) -c constraints.txt -e '.[cli,verify]'
	touch $@

$(DEV_STAMP): $(PACKAGING) | $(BIN)/python
	$(BIN)/python -m pip install $(PIP_ARGS) -c constraints.txt -e '.[cli,verify,kernels,observe,dev]'
	touch $(USER_STAMP) $@

demo: $(USER_STAMP)
	$(BIN)/hitproof check mixed_attention
	$(BIN)/hitproof verify mixed_attention --mutants
	$(BIN)/hitproof test mixed_attention
	mkdir -p build
	$(BIN)/hitproof trace synth --out build/demo-trace.jsonl --requests 2000 --seed 7
	for model in deepseek-v4-flash gemma-3-27b qwen3-next-80b-a3b; do \
	  $(BIN)/hitproof replay $(TRACE) --model $$model --capacity 10000 --host-blocks 50000 --disk-blocks 200000 --retention all || exit $$?; \
	done
	$(BIN)/hitproof replay $(TRACE) --model gemma-3-27b --capacity 10000 --host-blocks 50000 --disk-blocks 200000 --policy all --lanes 4 --html build/demo.html

test: $(DEV_STAMP)
	$(BIN)/pytest -n 2 --dist loadfile -q $(PYTEST_ARGS)

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p hitproof
	$(BIN)/mypy tests

schema: $(DEV_STAMP)
	for kind in rulefile repair profile scenario rates; do \
	    $(BIN)/hitproof schema --of $$kind --out docs/schema/$$kind.schema.json || exit 1; \
	done
	$(BIN)/python -m tests.verification.axioms_digest
	$(BIN)/hitproof alerts --out docs/operations/alerts.yaml
	$(BIN)/hitproof alerts --as grafana --out docs/operations/dashboard.json

# The verdicts that strict loading of the embedded rulebook asks for; to be made anew after every change of a rule.
proof: $(DEV_STAMP)
	$(BIN)/hitproof verify mixed_attention --verdicts rules/mixed_attention/rulebook.proof.json

bench: $(DEV_STAMP)
	$(BIN)/python -m benchmarks

# Each serving framework in an environment of its own; PIP_ARGS is handed to pip.
integration-lmcache:
	PIP_ARGS='$(PIP_ARGS)' PYTHON=$(PYTHON) sh integrations/lmcache/environment.sh build/integrations/lmcache
	PYTHONHASHSEED=0 OMP_NUM_THREADS=1 build/integrations/lmcache/bin/python -m pytest -q -p no:cacheprovider tests/integrations/lmcache $(PYTEST_ARGS)

integration-vllm:
	PIP_ARGS='$(PIP_ARGS)' PYTHON=$(PYTHON) sh integrations/vllm/environment.sh build/integrations/vllm
	OMP_NUM_THREADS=1 build/integrations/vllm/bin/python -m pytest -q -p no:cacheprovider tests/integrations/vllm $(PYTEST_ARGS)
	OMP_NUM_THREADS=1 build/integrations/vllm/bin/python -m tests.integrations.vllm.overhead

integration-sglang:
	PIP_ARGS='$(PIP_ARGS)' PYTHON=$(PYTHON) sh integrations/sglang/environment.sh build/integrations/sglang
	SGLANG_PLATFORM=plain_cpu OMP_NUM_THREADS=1 build/integrations/sglang/bin/python -m pytest -q -p no:cacheprovider tests/integrations/sglang $(PYTEST_ARGS)
	SGLANG_PLATFORM=plain_cpu OMP_NUM_THREADS=1 build/integrations/sglang/bin/python -m tests.integrations.sglang.overhead

clean:
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
