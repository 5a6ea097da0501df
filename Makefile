# Every target works on a fresh clone: it builds what it needs first. `make` without a target lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CACHE := $(or $(RESIDE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/reside)
UV := $(or $(shell command -v uv 2>/dev/null),$(CACHE)/uv/bin/uv)
RUN := .venv/bin
# With this set, every Python program compiles all of its modules at every start: `reside` takes three times as long.
unexport PYTHONDONTWRITEBYTECODE
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.tools/bin:$(PATH)

.PHONY: help tools alltools up repository down status test docs check quick coverage soak bench references pictures release clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

$(CACHE)/uv/bin/uv:
	python3 -m venv $(CACHE)/uv && $(CACHE)/uv/bin/pip install --quiet --require-hashes --only-binary :all: -r tools/uv.txt

.venv/.synced: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --quiet && touch $@

tools: .venv/.synced ## build the engine and Kubernetes into the cache, if they are not there yet
	@$(RUN)/python tools/build.py

alltools: .venv/.synced ## also build the ingress controller and cert-manager, and install a browser, for the tests
	@$(RUN)/python tools/build.py --all

# On an existing cluster with KUBE_CONTEXT, IMAGE_REPOSITORY=HOST/PATH and REGISTRY_CONFIG (docs/own-cluster.md)
ELSEWHERE = $(if $(KUBE_CONTEXT),--kube-context $(KUBE_CONTEXT)) $(if $(IMAGE_REPOSITORY),--image-repository \
	$(IMAGE_REPOSITORY)) $(if $(REGISTRY_CONFIG),--registry-config $(REGISTRY_CONFIG))
ifneq ($(KUBE_CONTEXT),)
ifeq ($(IMAGE_REPOSITORY),)
up: repository
endif
endif

up: tools ## start a complete ReSide and load an example replica: on the embedded Kubernetes, or with KUBE_CONTEXT=…
	@$(RUN)/python -m reside.cli.up $(ELSEWHERE) $(OPTIONS)

repository:
	@echo "error: KUBE_CONTEXT needs IMAGE_REPOSITORY=HOST/PATH, which the nodes can pull from (docs/own-cluster.md)" >&2
	@exit 1

down: .venv/.synced ## stop the embedded Kubernetes; its state is kept for the next `make up`
	@$(RUN)/reside local down

status: .venv/.synced ## show the parts of the embedded Kubernetes and the replicas
	@$(RUN)/reside local status

test: alltools ## run every test
	$(RUN)/pytest -n 4 --dist loadgroup --no-loadscope-reorder

quick: .venv/.synced
	@$(RUN)/pytest -q tests/unit -n 2

docs: .venv/.synced ## build the documentation as a site in .state/site; fails for a dead link
	@NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet

check: .venv/.synced ## run the linters, mypy, the import contracts and the unit tests, in about a minute
	$(RUN)/ruff check . && $(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory quick

coverage: tools ## run the Jazz client's tests and show the lines that they miss; fails below 95 %
	$(RUN)/pytest tests/unit/jazz tests/interop -n 3 --dist loadgroup --no-loadscope-reorder \
		--cov=reside/jazz --cov-report=term-missing:skip-covered --cov-fail-under=95

soak: alltools ## run the longer tests: random failures, fuzzing, memory leaks
	$(RUN)/pytest -m soak

bench: tools ## print the benchmarks that take minutes; alpha.py and fleet.py take longer
	$(RUN)/python benchmarks/apply.py
	$(RUN)/python benchmarks/engine.py
	$(RUN)/python benchmarks/jazz.py
	$(RUN)/python benchmarks/jazz_gate.py
	$(RUN)/python benchmarks/load.py
	$(RUN)/python benchmarks/dev.py
	$(RUN)/python benchmarks/bootstrap.py
	$(RUN)/python benchmarks/grants.py
	$(RUN)/python benchmarks/rpc.py
	$(RUN)/python benchmarks/cli.py
	$(RUN)/python benchmarks/reports.py
	$(RUN)/python benchmarks/revocations.py

references: .venv/.synced ## write the pages and the picture of the documentation that are made from the code
	@for page in cli_reference codes_reference contracts_reference jazz_reference metrics_reference terminal_picture; do \
		$(RUN)/python tools/$$page.py || exit 1; done

pictures: alltools ## take the pictures of the console's page for the documentation, in a browser
	RESIDE_PICTURES=$(CURDIR)/docs/pictures $(RUN)/pytest -q -n 0 \
		tests/integration/alpha/test_console_page.py::test_a_new_replica_appears_in_the_page_within_a_second

release: tools ## build the wheels, images and programs of a release into dist/ (docs/versions.md)
	@$(RUN)/python tools/release.py

clean: down ## remove the local cluster's state and the checkout's environment; the toolchain cache stays
	$(RUN)/reside local down --delete-state
	rm -rf .venv .tools .state .pytest_cache .mypy_cache .ruff_cache
