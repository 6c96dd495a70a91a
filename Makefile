# Everything that a newcomer needs: each target makes .venv, installs what is missing, and does one thing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TRAINS := .venv/.trains

.PHONY: test check demo docs release browser clean

test: $(INSTALLED) browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(INSTALLED) browser
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -n 2 --dist loadgroup

demo: $(TRAINS)
	$(BIN)/unbraid study run studies/demo.yaml --out demo
	$(BIN)/unbraid study rank demo
	$(BIN)/unbraid report demo --out demo/report.html
	@echo "Open demo/report.html in a browser: the best and the worst model side by side, with everything that was scored."

docs: $(INSTALLED)
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir .venv/.doctrees docs site
	@echo "Open site/index.html in a browser."

# Up to what can be uploaded; RELEASING.md says what is left to do by hand.
release: $(INSTALLED) browser
	@test -z "$$(git status --porcelain)" || { echo "Commit first: a release is built from what is committed."; exit 2; }
	$(BIN)/python tools/release.py $(VERSION)
	$(MAKE) check docs
	rm -rf dist
	$(BIN)/python -m build
	$(PYTHON) -m venv dist/.bare
	dist/.bare/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	dist/.bare/bin/unbraid score --example --metrics mig,dci_lasso
	rm -rf dist/.bare
	@echo "dist/ holds the wheel and the source archive. Commit, tag and upload: see RELEASING.md."

# Tests of pages drive Chromium; where there is none they are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && { apt-get update -qq && apt-get install -qq --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	  echo "No Chromium here: the tests of pages will be skipped."

$(INSTALLED): $(TRAINS)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# What training, scoring and reports need, without the tools of development.
$(TRAINS): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unbraid needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[table,train]'
	touch $@

clean:
	rm -rf .venv demo site docs/metrics docs/families docs/datasets docs/reference
