# Everything that a newcomer needs: each target makes .venv, installs what is missing, and does one thing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: test check demo docs clean

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2

check: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -n 2

demo: $(INSTALLED)
	$(BIN)/unbraid score --example --html demo.html
	@echo "Open demo.html in a browser."

docs: $(INSTALLED)
	$(BIN)/python docs/generate.py

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unbraid needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv demo.html
