PYTHON ?= python3
VENV ?= .venv
VENV_DEMO ?= .venv-demo
BIN := $(VENV)/bin
DEMO := $(VENV_DEMO)/bin
VENV_RELEASE ?= .venv-release
VENV_SITE ?= .venv-site
RELEASE := $(VENV_RELEASE)/bin/python -m tests.release
SAMPLE := sample_configs/full-8b-out-of-memory.yaml
TORCH ?= torch==2.13.0
# torch without CUDA, a tenth of the download; where this index cannot be reached, pip takes torch from its usual one.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
AXOLOTL := axolotl==0.19.0
TRL := trl==1.9.0
VENV_UPSTREAM ?= .venv-upstream
NEWEST := $(VENV_UPSTREAM)/bin
UPSTREAM := build/upstream
INPUTS ?= 2000
# A word of their names, or a path below tests/.
TESTS ?=
CHOSEN := $(if $(filter tests/%,$(TESTS)),$(TESTS),$(if $(TESTS),-k '$(TESTS)'))
# As many processes as cores, at most four: an oracle takes some GiB.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --durations 10 --durations-min 1 $(CHOSEN)

# Tests start hundreds of commands: compile each module once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo setup test slow check oracles examples fuzz sweep snapshots accuracy site pictures web web-archive web-test vscode lint format tables prices defaults upstream tapes bench owner dist dist-try notes release-check release-ready version clean
.DEFAULT_GOAL := help

help: ## List the verbs
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

demo: $(VENV_DEMO)/.installed ## See a run that does not fit made to fit (installs the core alone)
	@PATH="$(abspath $(DEMO)):$$PATH"; set -e; out=$$(mktemp -d $(VENV_DEMO)/patched.XXXXXX); trap 'rm -rf "$$out"' EXIT; \
	say() { printf '\n$$ %s\n' "$$*"; }; \
	say advisor check $(SAMPLE); \
	code=0; advisor check $(SAMPLE) || code=$$?; test $$code -eq 1; \
	say advisor check --fix --unsafe-fixes --output-dir patched $(SAMPLE); \
	code=0; advisor check --fix --unsafe-fixes --output-dir "$$out" $(SAMPLE) > "$$out/log" || code=$$?; \
	sed "s|$$out|patched|g" "$$out/log"; test $$code -eq 0; \
	say diff $(SAMPLE) patched; \
	diff -u --label $(SAMPLE) --label patched/$(notdir $(SAMPLE)) $(SAMPLE) "$$out/$(notdir $(SAMPLE))" > "$$out/diff" || test $$? -eq 1; \
	sed "s|$$out|patched|g" "$$out/diff"; \
	say advisor check -q patched; \
	code=0; advisor check -q "$$out" > "$$out/log" || code=$$?; sed "s|$$out|patched|g" "$$out/log"; test $$code -eq 0

setup: $(VENV)/.installed ## Make .venv with everything that tests and checks need

test: $(VENV)/.installed ## Run what a change needs, in two minutes; TESTS=rules: those with this word in their names
	env -u ADVISOR_CORPUS $(PYTEST) --ignore tests/oracles -m "not oracle and not slow"

check: test slow ## Run those, then the slow ones

slow: $(VENV)/.installed ## Run the slow ones alone: browsers, killed processes, fuzz, grids, full sizes, the corpus
	$(PYTEST) --dist loadfile --no-loadscope-reorder --ignore tests/oracles -m "slow and not oracle"

oracles: $(VENV)/.installed ## Ask the real transformers, DeepSpeed and axolotl
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m oracle

examples: $(VENV)/.installed ## Run the examples inside the rules
	$(BIN)/advisor test

fuzz: $(VENV)/.installed ## Put INPUTS (2000) mutated configs of each kind through every command, others each time
	ADVISOR_FUZZ_INPUTS=$(INPUTS) $(BIN)/python -m pytest tests/fuzz

sweep: $(VENV)/.installed ## Check what every fix of every real config promises, on five kinds of node
	$(BIN)/python -m tests.corpus.sweep

snapshots: $(VENV)/.installed ## Rewrite tests/snapshots; read the diff before you commit it
	UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -m "not oracle" tests/test_samples.py

accuracy: $(VENV)/.installed ## Rewrite the ranges and the figures of the README and the site from the published runs; read the diff
	$(BIN)/python -m tests.accuracy.renew

site: $(VENV_SITE)/.installed ## Build the site into build/site/out; PAGE=site/web puts the page of `make web` into it
	$(VENV_SITE)/bin/python -m tests.website.build build/site $(PAGE)

pictures: $(VENV)/.installed ## Draw the README's screen and the preview of the page again (needs Chromium)
	$(BIN)/python -m tests.pictures
	$(BIN)/python -m tests.plugins.web.preview

web: $(VENV_DEMO)/.installed ## Build the page that runs in the browser into site/web (needs npm)
	$(DEMO)/python -m advisor.plugins.web.build site/web

web-archive: web ## Put that page into a zip in site/, as a release has it
	@$(DEMO)/python -c 'import advisor, shutil; print(shutil.make_archive(f"site/axolotl-advisor-web-{advisor.__version__}", "zip", "site", "web"))'

web-test: $(VENV)/.installed ## Drive the page and the HTML reports in Chromium
	$(BIN)/python -m pytest tests/plugins/web tests/report/test_html.py

vscode: $(VENV)/.installed ## Bundle the extension for VS Code, and drive it in Node.js against the server (needs npm)
	cd plugins/language_server/vscode && npm ci --no-audit --no-fund && npm run build && ADVISOR="$(abspath $(BIN))/advisor" npm test

lint: $(VENV)/.installed ## ruff and pyright
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

format: $(VENV)/.installed ## Let ruff fix and format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

tables: $(VENV)/.installed ## Rewrite the key tables from the installed axolotl and DeepSpeed
	$(BIN)/python -m tests.tables.generate

prices: $(VENV)/.installed ## Rewrite the prices of cards from OFFERS, a CSV of what clouds ask (CONTRIBUTING.md)
	$(BIN)/python -m tests.tables.prices $(OFFERS)

defaults: $(VENV)/.installed ## Rewrite the defaults of config classes, and the index of families, from the installed transformers
	$(BIN)/python -m tests.models.defaults

upstream: $(VENV)/.installed ## Hold tables, oracles and cited lines against the newest axolotl, transformers, DeepSpeed, PEFT, TRL, accelerate
	rm -rf $(UPSTREAM)
	$(PYTHON) -m venv --clear $(VENV_UPSTREAM)
	$(NEWEST)/python -m pip install --quiet --no-deps --timeout 20 --retries 1 --extra-index-url $(TORCH_INDEX) $(TORCH)
	$(NEWEST)/python -m pip install --quiet -e '.[test]'
	$(NEWEST)/python -m pip install --quiet --upgrade transformers deepspeed peft accelerate $(TORCH)
	$(NEWEST)/python -m pip install --quiet --upgrade --no-deps axolotl trl
	$(BIN)/python -m pip install --quiet --no-deps --target $(UPSTREAM)/pinned/packages $(TRL)
	$(BIN)/python -m tests.upstream.observe $(UPSTREAM)/pinned
	$(NEWEST)/python -m tests.upstream.observe $(UPSTREAM)/newest
	$(BIN)/python -m tests.upstream.report $(UPSTREAM)/pinned $(UPSTREAM)/newest > $(UPSTREAM)/report.md
	@cat $(UPSTREAM)/report.md

tapes: $(VENV)/.installed ## Record the allocations of training steps again, from the installed torch, transformers and PEFT
	$(BIN)/python -m tests.allocations.record

bench: $(VENV)/.installed ## Time a cold check, and all configs of the corpus
	$(BIN)/python -m tests.benchmarks.cold
	$(BIN)/python -m tests.benchmarks.many

owner: ## Write NAME, the account that this repository lives under, wherever it stands
	@$(PYTHON) -m tests.release.places owner "$$NAME"

dist: $(VENV_RELEASE)/.installed ## Build sdist and wheel of the last commit into dist/, and look into them
	@$(RELEASE).dist

dist-try: $(VENV_RELEASE)/.installed ## Install what is in dist/ on PYTHONS (those of CI that are here), and use it
	@$(RELEASE).trying $(PYTHONS)

notes: ## Print what the changelog says of this version
	@$(PYTHON) -m tests.release.notes

release-check: $(VENV_RELEASE)/.installed ## Run every line that a user copies, from a clone with this version's tag
	@$(RELEASE).check

release-ready: ## Check that the last commit may be released as TAG
	@$(PYTHON) -m tests.release.ready "$$TAG"

version: ## Write NUMBER, the next version, wherever it stands
	@$(PYTHON) -m tests.release.places version "$$NUMBER"

clean: ## Remove the environments and all caches
	rm -rf $(VENV) $(VENV_DEMO) $(VENV_RELEASE) $(VENV_SITE) .venv-axolotl build dist site *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# torch first and alone: DeepSpeed's build asks for it. axolotl without what it pins: the tests call its schema only.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --timeout 20 --retries 1 --extra-index-url $(TORCH_INDEX) $(TORCH)
	$(BIN)/python -m pip install --quiet -e '.[test,lint]'
	$(BIN)/python -m pip install --quiet --no-deps $(AXOLOTL)
	@touch $@

$(VENV_RELEASE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV_RELEASE)
	$(VENV_RELEASE)/bin/python -m pip install --quiet -e '.[release]'
	@touch $@

$(VENV_SITE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV_SITE)
	$(VENV_SITE)/bin/python -m pip install --quiet -e '.[site]'
	@touch $@

$(VENV_DEMO)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV_DEMO)
	$(DEMO)/python -m pip install --quiet -e .
	@touch $@
