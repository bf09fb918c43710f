# `make lab` opens the lectures, `make test` runs every test. Both first make the environment (bootstrap.py).

PYTHON ?= python3
COURSE_VENV ?= .venv
export COURSE_VENV
ifeq ($(OS),Windows_NT)
BIN = $(COURSE_VENV)/Scripts
else
BIN = $(COURSE_VENV)/bin
endif

.PHONY: help lab quick test screenshots notebooks release book demo benchmarks gpu wheels lock python whole instructor

help:
	@echo 'make lab        set everything up and open the lectures in JupyterLab'
	@echo 'make test       set everything up and run every check and test (instructors)'
	@echo 'make quick      linters, types and the quick tests, in a minute; installs nothing (instructors)'
	@echo 'make notebooks  build the notebooks from solutions/ (instructors)'
	@echo 'make release    make the folder and zip that students get, in build/ (instructors)'
	@echo 'make book       make the web book of all lectures with their outputs, in build/book (instructors)'
	@echo 'make screenshots  pictures of every lecture in JupyterLab, light and dark, in build/screenshots (instructors)'
	@echo 'make demo       grade a made-up class and a small semester, in build/demo and build/semester (instructors)'
	@echo 'make benchmarks  compare with what people use otherwise, on an idle machine: docs/performance.md (instructors)'
	@echo 'make gpu        run every lecture and the tests that need a GPU on this machine, see docs/gpu-runner.md (instructors)'
	@echo 'make wheels     make a folder for `make gpu` on a machine without a network, build/wheels (instructors)'
	@echo 'make lock       write requirements.lock from pyproject.toml (instructors; UPGRADE=1 for newer versions)'
	@echo ''
	@echo 'PYTHON=python3.12 chooses the Python, COURSE_VENV=/path the folder of the environment.'

python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo 'Setup stopped: there is no $(PYTHON) on this machine; install Python 3.11 to 3.14.' >&2; exit 1; }

lab: python
	@$(PYTHON) bootstrap.py lab $(ARGS)

whole:
	@test -d autograder || { \
	  echo 'This is the students'\'' copy: only `make lab` works here, the rest is for instructors.' >&2; exit 1; }

instructor: python whole
	@$(PYTHON) bootstrap.py --extra test

# All four run, whichever fails.
LINT = status=0; \
	$(BIN)/python -m ruff check . || status=1; \
	$(BIN)/python -m ruff format --check . || status=1; \
	$(BIN)/python -m mypy || status=1; \
	test $$status = 0
# tests/conftest.py has put the longest tests first; the option keeps pytest-xdist from reordering them.
PYTEST = $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder

# What every edit should pass, in less than a minute; installs nothing. The linters run beside the tests. A test that takes
# 30 seconds fails here: it belongs into the list in tests/conftest.py.
quick: whole
	@$(BIN)/python -c 'import mypy, pytest, ruff, xdist' 2>/dev/null || { \
	  echo 'There is no environment with the tests'\'' packages in $(COURSE_VENV): make it with' >&2; \
	  echo '`$(PYTHON) bootstrap.py --extra test`, or name another folder in COURSE_VENV.' >&2; exit 1; }
	@{ $(LINT); } & lint=$$!; status=0; \
	$(PYTEST) -n 2 -q --quick -m 'not slow and not hostile' --timeout=30 $(ARGS) || status=1; \
	wait $$lint || status=1; \
	exit $$status

# Every step runs, so that one report has all that is wrong; what the linters say comes after the tests. Four workers
# on two cores, since two of them mostly wait: for a page, a time-out, an installation. The hostile class and the kills
# come last, because they flood the machine; of the two hundred kills (minutes) twenty-four are done here.
test: instructor
	@status=0; said=$$(mktemp); { $(LINT); } > $$said 2>&1 & lint=$$!; \
	$(PYTEST) -n 4 --leave-nothing --durations=30 $(ARGS) || status=1; \
	wait $$lint || status=1; cat $$said; rm $$said; \
	COURSE_KILLS=$${COURSE_KILLS:-24} $(PYTEST) -n 2 --leave-nothing -m hostile tests/grading || status=1; \
	exit $$status

# Every lecture in JupyterLab, light and dark, in a wide and a narrow window, from top to bottom: build/screenshots.
screenshots: instructor
	@COURSE_SCREENSHOTS=build/screenshots $(BIN)/python -m pytest -q tests/browser/test_lectures.py -k top_to_bottom $(ARGS)
	@echo build/screenshots

notebooks: instructor
	@$(BIN)/course notebooks

release: instructor
	@$(BIN)/course release

book: instructor
	@$(BIN)/course book $(ARGS)

demo: instructor
	@$(BIN)/course demo $(ARGS)
	@$(BIN)/course demo --semester

# An hour and more: ARGS='--only timing import' makes some of it.
benchmarks: instructor
	@$(BIN)/python benchmarks $(ARGS)

# The machine's own PyTorch is used; TORCH= installs the course's. Where there is a folder of wheels nothing is
# fetched: they are unpacked into build/site, for this machine's Python.
TORCH ?= --system-torch
ifneq ($(wildcard build/wheels/requirements.txt),)
build/site: build/wheels/requirements.txt
	@rm -rf $@
	@$(PYTHON) -m pip install --quiet --no-index --find-links build/wheels --no-deps --target $@ -r $<

gpu: python whole build/site
	@PYTHONPATH=$(CURDIR):$(CURDIR)/build/site $(PYTHON) benchmarks/gpu.py $(ARGS)
else
gpu: python whole
	@$(PYTHON) bootstrap.py --extra gpu $(TORCH)
	@$(BIN)/python benchmarks/gpu.py $(ARGS)
endif

wheels: instructor
	@$(BIN)/python benchmarks/wheels.py $(ARGS)

# The environment need not fit pyproject.toml: mending that is what this is for.
lock: python whole
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(PYTHON) bootstrap.py --extra test
	@$(BIN)/python -m uv pip compile --quiet --universal --no-annotate --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command 'make lock' --extra test $(if $(UPGRADE),--upgrade) pyproject.toml -o requirements.lock
