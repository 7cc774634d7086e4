# make          set up .venv and run the whole study; the report is report/build/report.html
# make smoke    the same at tiny sizes, in about two minutes
# make plan     what a run will take, before it starts
# make test     lint, types and the fast tests
# make soak     the tests of reruns, crashes and bad input at full length, in a few hours
# make verify   the data of the smoke profile, compared with those that are committed in data/reference/smoke
# make crate    the finished run as one archive, an RO-Crate, beside its report
# make lab      JupyterLab on the notebooks; LAB=--no-browser hands options on
# make bench    speed and memory of the kernels beside other simulators, in a few minutes on an idle machine
# make lock     pin every package anew in requirements.lock, those of the benchmark and of the archive's validator in locks of their own
# make claims   copy the table of claims and the main figure of a run to report/, for the README
# make reference  those data of the smoke profile anew, after a change of its sizes, its seed or the kernels
# make clean    remove all results, logs and compiled kernels
#
# make CONFIG=config/mine.yaml runs a study of your own, make CORES=1 uses one core.

CORES ?= all
CONFIG ?=
LAB ?=
PYTHON ?= python3

.DEFAULT_GOAL := all
.PHONY: all smoke plan test soak verify crate lab bench lock claims reference clean

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/installed.lock
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tools are run as modules: the scripts in .venv/bin hold an absolute path, and break when the folder is moved.
SNAKEMAKE := $(PY) -m snakemake --cores $(CORES)

# One run at a time: a second one waits, and then finds everything done.
define run
@mkdir -p .snakemake
@if command -v flock > /dev/null; then \
	exec 9> .snakemake/make.lock; \
	flock -n 9 || { echo "Waiting for another run in this folder to end"; flock 9; }; \
fi; \
$(SNAKEMAKE) $(1)
endef

# Checked before Snakemake reads it, who would run the expressions of a file that is a YTE template.
all: $(INSTALLED)
	$(if $(CONFIG),@$(PY) -m dchoices.workflow.config $(CONFIG) > /dev/null)
	$(call run,$(if $(CONFIG),--configfile $(CONFIG)))

smoke: $(INSTALLED)
	$(call run,--configfile config/smoke.yaml)

plan: $(INSTALLED)
	$(PY) -m dchoices.workflow.plan $(or $(CONFIG),config/paper.yaml)

test: $(INSTALLED)
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m dchoices.warm_up
	$(PY) -m pytest --numprocesses auto --dist loadfile

soak: $(INSTALLED)
	$(PY) -m pytest -m trust --soak

SMOKE_DATA := datasets --configfile config/smoke.yaml
VERIFY := $(PY) -m dchoices.workflow.verify data/smoke data/reference/smoke
verify: $(INSTALLED)
	$(call run,$(SMOKE_DATA))
	$(VERIFY)

reference: $(INSTALLED)
	$(call run,$(SMOKE_DATA))
	$(VERIFY) --update

crate: all
	$(PY) -m dchoices.workflow.crate $(or $(CONFIG),config/paper.yaml)

lab: $(INSTALLED)
	@echo "Compiling the kernels, about a minute the first time"
	@$(PY) -m dchoices.warm_up
	JUPYTER_PREFER_ENV_PATH=1 $(PY) -m jupyterlab --ServerApp.root_dir=. --LabApp.app_settings_dir=profiles/lab \
		--LabApp.default_url=/lab/tree/notebooks/explore.ipynb $(LAB)

bench: $(INSTALLED)
	$(PY) -m pip install --quiet --require-hashes -r benchmarks/requirements.lock
	$(PY) -m dchoices.warm_up
	$(PY) benchmarks/run.py

PIN := -m uv pip compile --universal --generate-hashes --fork-strategy fewest --no-header --quiet
lock: $(INSTALLED)
	$(PY) $(PIN) pyproject.toml --all-extras -o requirements.lock.new
	mv requirements.lock.new requirements.lock
	$(PY) $(PIN) --python-version 3.11 --group pyproject.toml:bench -c requirements.lock -o benchmarks/requirements.lock.new
	mv benchmarks/requirements.lock.new benchmarks/requirements.lock
	$(PY) $(PIN) --group pyproject.toml:validator -o tests/validator/requirements.lock.new
	mv tests/validator/requirements.lock.new tests/validator/requirements.lock

claims:
	cp report/build/claims.md report/claims.md
	cp report/build/main-figure.svg report/main-figure.svg

clean:
	[ ! -d data ] || find data -mindepth 1 -maxdepth 1 ! -name reference -exec rm -rf {} +
	rm -rf report/build .snakemake .numba_cache

# The environment holds a copy of the lock that it was made from: an unchanged lock is not installed again.
$(INSTALLED): requirements.lock pyproject.toml
	@set -e; \
	if ! $(PY) -c '' 2> /dev/null; then \
		for candidate in $(PYTHON) python3.13 python3.12 python3.11; do \
			if $$candidate -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null; \
			then base=$$candidate; break; fi; \
		done; \
		if [ -z "$${base:-}" ]; then \
			echo "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=/path/to/python" >&2; exit 1; \
		fi; \
		echo "Making $(VENV) with $$($$base --version)"; \
		$$base -m venv --clear $(VENV); \
	fi; \
	if ! cmp -s requirements.lock $@; then \
		echo "Installing the packages of requirements.lock into $(VENV), a few minutes the first time"; \
		{ command -v uv > /dev/null && uv pip install --quiet --python $(PY) --require-hashes -r requirements.lock; } || \
			$(PY) -m pip install --quiet --require-hashes -r requirements.lock; \
	fi; \
	$(PY) -m pip install --quiet --no-deps --no-build-isolation -e .; \
	cp requirements.lock $@
