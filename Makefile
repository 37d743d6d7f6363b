# `make` alone lists what there is. The work is done in tests/tools; the number beside a step is its budget in minutes.
.DEFAULT_GOAL := help
.NOTPARALLEL:
export MAKE
export VENV ?= .venv
export LAB_NAME ?= lab
NODES ?= 4
PYTHON ?= python3
tools := tests/tools
steps := python3 -m tests.tools.steps
turns := python3 -m tests.tools.turns

# Through sudo, make would fill the clone of an ordinary user with files of root's.
ifeq ($(shell id -u):$(SUDO_UID),0:$(shell stat --format=%u .))
ifneq ($(SUDO_UID),0)
$(error Run make without sudo, as $(SUDO_USER): it uses sudo itself for what needs root)
endif
endif

help: ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

demo: venv ## the gates on 32 simulated hosts: plan, three faults, report; no root, one minute
	@$(tools)/demo.sh

lab: ## from nothing to four machines (or NODES=2 …) with the site playbook run on them
	@python3 -m lab.preflight --name $(LAB_NAME) --nodes $(NODES) --python $(PYTHON)
	@$(steps) --stop prepare=4 lab-up=6 site=6

lab-up: prepare ## the lab's machines alone
	@lab/lab up --name $(LAB_NAME) --nodes $(NODES)

lab-down: ## remove the lab
	@lab/lab down --name $(LAB_NAME)

site: venv ## the site playbook on the lab that is up
	@$(tools)/site.sh

test: ## every check, each unit test once (add PYTHON=python3.13 for the newest ansible-core)
	@RDMA_TEST_ONCE=yes $(steps) prepare=1 fabric-packages=1 unit=3 host-units=2 build=1 checks=5 docs=1 scenario-default scenario-policies scenario-hostile demo=1

test-all: ## the checks of `test`, every scenario, and the newest ansible-core; goes on where it was ended
	@RDMA_TEST_EXAMPLES=new RDMA_TEST_PYTHONS=all RDMA_TEST_KILLS=20 RDMA_TEST_EACH=1 \
		$(steps) --resume prepare=4 unit=7 host-units=5 lint=3 build=1 sanity=7 docs=1 scenarios newest=14

prepare: ## packages of the distribution, and the virtual environment
	@$(tools)/packages.sh lab/packages.txt tests/packages.txt
	@$(tools)/venv.sh $(PYTHON)

fabric-packages: ## packages of the distribution for a simulated fabric, with opensm masked
	@$(tools)/packages.sh lab/fabric-packages.txt

venv: ## the virtual environment alone
	@$(tools)/venv.sh $(PYTHON)

faults: venv ## every fault of the catalogue without machines; writes docs/faults.md (`unit` compares it)
	@$(tools)/run.sh python -m tests.faults

month: venv ## a simulated month of faults without machines; writes docs/faults_month.md (`unit` compares its first days)
	@$(tools)/run.sh python -m tests.faults.month

faults-lab: prepare ## the faults that need simulated fabrics or machines (ARGS=--list lists them)
	@$(tools)/run.sh python -m tests.faults --lab $(ARGS)

mutation: venv ## how many changes of parsers and checks the unit tests notice (N=, SEED=, FRESH=, FRESH_SEED=); writes docs/mutation.md; 40 minutes
	@$(tools)/mutation.sh $(ARGS)

unit: venv ## unit tests, and the faults
	@$(tools)/units.sh

host-units: venv ## the unit tests of what runs on hosts, under the oldest Python that hosts have
	@$(tools)/host_units.sh

lint: venv ## ruff, mypy, yamllint, ansible-lint, changelog and documentation
	@$(tools)/lint.sh

build: venv ## build and install the collection, and find its site playbook
	@$(tools)/build.sh

checks: venv ## lint and sanity, side by side
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint sanity

docs: venv ## the documentation site
	@$(tools)/docs_site.sh

sanity: venv ## ansible-test sanity
	@$(tools)/sanity.sh

scenario-%: prepare ## one scenario of molecule, such as scenario-policies
	@$(turns) $*

turns: prepare ## as many scenarios as fit into 60 minutes, the most needed first (ARGS=--list shows them)
	@$(turns) $(ARGS)

newest: ## units, build and sanity under the newest supported ansible-core
	@$(MAKE) --no-print-directory VENV=.venv/newest PYTHON=python3.13 unit build sanity

bench: venv ## what the tools cost, against their bars; of the lab only if it is up
	@$(tools)/bench.sh

pictures: prepare fabric-packages ## the pictures of the documents, from a lab of four containers
	@$(tools)/packages.sh tests/pictures-packages.txt
	@$(tools)/run.sh python -m tests.tools.pictures

format: venv ## fix and format with ruff
	@$(tools)/run.sh ruff check --fix
	@$(tools)/run.sh ruff format

requirements: venv ## pin the newest version of every requirement
	@$(tools)/requirements.sh

clean: ## remove what the tools made, but no lab and no evidence
	rm -rf .venv .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache tests/output rdma-cluster-*.tar.gz

.PHONY: help docs fabric-packages demo faults faults-lab month mutation lab lab-up lab-down site test test-all prepare venv unit host-units lint build checks sanity turns newest bench pictures format requirements clean
