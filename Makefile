# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: soak demo test lint types suite score fuzz golden clean

demo: $(VENV)/.installed
	@$(BIN)/trainwreck diagnose examples/siamese-nan --fail-on never
	@$(BIN)/trainwreck diagnose examples/siamese-nan --fail-on never -o demo-report.html
	@echo "The same as one offline HTML page: $(CURDIR)/demo-report.html"

test: $(VENV)/.installed-test lint types suite

lint: $(VENV)/.installed-test
	$(BIN)/ruff check src tests tools
	$(BIN)/ruff format --check src tests tools

types: $(VENV)/.installed-test
	$(BIN)/mypy

suite: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

score: $(VENV)/.installed-test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python ../shared/score/errors.py --show 200
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python ../shared/score/logs.py --show 200

fuzz: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 TRAINWRECK_FUZZ=$${FUZZ:-100000} $(BIN)/python tools/fuzz.py
	OMP_NUM_THREADS=1 TRAINWRECK_FUZZ=$${FUZZ:-50000} $(BIN)/python tools/fuzz_check.py

golden: $(VENV)/.installed-test
	$(BIN)/python tools/update_golden.py

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[test,frameworks]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache demo-report.html

soak:
	$(BIN)/python tools/soak_recorder.py steps
	$(BIN)/python tools/soak_recorder.py kills
