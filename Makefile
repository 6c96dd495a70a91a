# Everything that a newcomer needs: each target makes .venv, installs what is missing, and does one thing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TRAINS := .venv/.trains

# Tests start processes by the dozen, each of which would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

# A process that dies ends the run: with another in its place, some tests would be waited for without end.
PYTEST := -m pytest -n 2 --max-worker-restart 0 --no-loadscope-reorder
OLDEST := .venv/oldest
BARE := .venv/bare

.PHONY: lint types test test-all kernels coverage mutants check check-slow check-kernel check-oldest check-wheel demo reproduce published zoo docs release browser clean

test: kernels browser
	$(BIN)/python $(PYTEST) -m "not slow and not lengthy"

test-all: kernels browser
	$(BIN)/python $(PYTEST)

# The kernels of the metrics are compiled once, for both processes that test.
kernels: $(INSTALLED)
	@$(BIN)/unbraid score --example > /dev/null

# Which lines of the numbers no test runs; a fifth slower than without.
coverage: $(INSTALLED)
	$(BIN)/python $(PYTEST) --cov tests/metrics tests/scoring tests/families tests/contracts

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python evidence/generate.py --check

types: $(INSTALLED)
	$(BIN)/basedpyright --pythonpath $(BIN)/python

check: $(INSTALLED) browser
	$(MAKE) lint kernels
	@# The types are checked meanwhile: a fifth of the time tests wait for processes that they started.
	$(MAKE) types & $(BIN)/python $(PYTEST); tested=$$?; wait $$! && exit $$tested

# What takes minutes: trainings to their end, large inputs, whole repetitions.
check-slow: $(INSTALLED) browser
	$(BIN)/python $(PYTEST) -m slow -o timeout=1800 -o faulthandler_timeout=2400

# Formulas with one token changed that no test notices, such as FILES=src/unbraid/metrics/mig.py; goes on where it stopped.
mutants: $(INSTALLED)
	$(BIN)/python tests/mutants.py $(FILES)

# The numbers, with the kernels of other processors, older and newer: what is red on other machines is red here.
AVX2 := ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2
SSE3 := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=+sse3
METRICS := $(BIN)/python $(PYTEST) -m "not slow and not lengthy" tests/metrics
check-kernel: $(INSTALLED)
	OPENBLAS_CORETYPE=Haswell $(AVX2) $(BIN)/python $(PYTEST) \
	  tests/scoring tests/contracts tests/families tests/metrics tests/show
	OPENBLAS_CORETYPE=Sandybridge $(AVX2) $(METRICS)
	OPENBLAS_CORETYPE=Nehalem $(AVX2) $(METRICS)
	OPENBLAS_CORETYPE=Prescott $(SSE3) $(METRICS)
	! grep -qs avx512vl /proc/cpuinfo || OPENBLAS_CORETYPE=SkylakeX $(METRICS)

# The README's digits are of the versions in constraints.txt: the perceptrons of nk round otherwise with others (.127, not .125).
# With the oldest versions that pyproject.toml names, and with anndata, which cannot live beside pandas 3; torch alone is the one that constraints.txt names.
check-oldest: $(OLDEST)/.installed
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/numba $(OLDEST)/bin/python $(PYTEST) -o filterwarnings=default --ignore tests/docs \
	  --deselect tests/test_readme.py::test_python_prints_what_stands_below_it

# The wheel in an environment of its own, away from the sources: first without extras; then the README's Python and
# commands, and the site, which runs the tutorials and the gallery and draws the figures.
check-wheel: $(INSTALLED)
	rm -rf $(BARE) && $(PYTHON) -m venv $(BARE)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(BARE)/wheel .
	$(BARE)/bin/python -m pip install --quiet --constraint constraints.txt $(BARE)/wheel/unbraid-*.whl
	cd $(BARE) && bin/python -c 'import sys, unbraid; assert "site-packages" in unbraid.__file__, unbraid.__file__; \
	  assert not {"torch", "pandas", "pyarrow", "ray"} & set(sys.modules)'
	cd $(BARE) && bin/unbraid score --example --metrics mig,dci_lasso --json scores.json --html scores.html
	cd $(BARE) && bin/unbraid cite unbraid mig sprites > cited.bib
	cd $(BARE) && test -s scores.json -a -s scores.html -a -s cited.bib
	$(BARE)/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(BARE)/bin/python -m pip install --quiet --constraint constraints.txt \
	  "$$(echo $(BARE)/wheel/unbraid-*.whl)[docs]" pytest pytest-timeout
	$(BARE)/bin/python -m pytest tests/test_readme.py
	$(BARE)/bin/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir $(BARE)/.doctrees docs $(BARE)/site

demo: $(TRAINS)
	test -e demo/images || $(BIN)/unbraid data render sprites --out demo/images --png \
	  --set shrink=4 --set "without=position_y > 15 or orientation > 0"
	$(BIN)/unbraid fit demo/images --plan examples/demo-plan.yaml --labels demo/images/factors.csv --out demo/fitted
	@echo "Open demo/fitted/report.html in a browser: what each latent of the chosen model does, and how sure the choice is."

# A study of evidence/studies/ again, such as STUDY=udr-2020-laptop: its runs, its page, its table, and the claims judged anew.
reproduce: $(TRAINS)
	@test -n "$(STUDY)" || { echo "Say which: make reproduce STUDY=udr-2020-laptop, a file of evidence/studies/ without .yaml."; exit 2; }
	$(BIN)/unbraid study run evidence/studies/$(STUDY).yaml --out reproduced/$(STUDY)
	$(BIN)/unbraid report reproduced/$(STUDY) --out reproduced/$(STUDY)/report.html
	$(BIN)/python evidence/make_claims.py --gather reproduced/$(STUDY)
	$(BIN)/python evidence/make_claims.py
	$(BIN)/python evidence/join_results.py
	$(BIN)/python evidence/generate.py
	@echo "Open reproduced/$(STUDY)/report.html in a browser."

# A slice of the papers' studies, most looked-for first, such as MINUTES=25 OUT=/somewhere; stops and goes on anywhere. Commit the
# tables of docs/reproductions/results after each; a study's page and claims are made by its `reproduce`, once it has ended.
MINUTES := 25
OUT := reproduced
published: $(TRAINS)
	$(BIN)/python evidence/run_published.py --minutes $(MINUTES) --out $(OUT)

# The zoo of a release from studies, such as STUDIES="reproduced/udr-2020-laptop reproduced/dci-2018-laptop"; chooses anew what
# of it lies inside the package. Upload zoo.zip with the release.
zoo: $(TRAINS)
	@test -n "$(STUDIES)" || { echo "Say of which: make zoo STUDIES='reproduced/udr-2020-laptop reproduced/dci-2018-laptop'."; exit 2; }
	$(BIN)/python evidence/make_zoo.py $(STUDIES)
	$(BIN)/python -m zipfile --create zoo.zip zoo

docs: $(INSTALLED)
	$(BIN)/python evidence/generate.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir .venv/.doctrees docs site
	@echo "Open site/index.html in a browser."

# Up to what can be uploaded; RELEASING.md says what is left to do by hand.
release: $(INSTALLED) browser
	@test -z "$$(git status --porcelain)" || { echo "Commit first: a release is built from what is committed."; exit 2; }
	$(BIN)/python evidence/release.py $(VERSION)
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
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train]'
	touch $@

# Pip would try versions one after another for minutes; uv resolves them at once.
$(OLDEST)/.installed: $(INSTALLED) tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(BIN)/python tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt torch uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python --constraint $(OLDEST)/constraints.txt \
	  --editable '.[train,data,onnx,ray,track,anndata,lightning]' \
	  flask flask-cors huggingface_hub hypothesis moto onnxruntime packaging playwright pytest pytest-timeout \
	  pytest-xdist
	touch $@

clean:
	rm -rf .venv demo site docs/metrics docs/families docs/datasets docs/reference
