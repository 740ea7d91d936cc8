# make demo   installs everything and runs the product: site, worker, people, on SQLite
# make test   installs everything and runs all checks and tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test install lint types floors checks tests faults matrix baseline sizing throughput scale herd admin-pages api-pages \
	bench bench-quick chaos clean

# What is installed follows the files that say so.
$(VENV)/.installed: pyproject.toml requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

install: $(VENV)/.installed

demo: install
	@$(BIN)/python manage.py demo $(ARGS)

test: lint types floors checks tests faults

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

floors: install
	$(BIN)/lint-imports --no-logo

checks: install
	$(BIN)/python manage.py makemigrations --check --dry-run --settings tests.settings
	$(BIN)/python manage.py check --fail-level WARNING --settings tests.settings

# All but the faults on SQLite and, at the same time, on PostgreSQL: the server DATABASE_URL names, or one that comes with a pip
# package.
tests: install
	$(BIN)/coverage erase
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; \
	TEST_DB=sqlite $(BIN)/coverage run -m pytest --ignore tests/faults $(ARGS) > $$log 2>&1 & on_sqlite=$$!; \
	echo "On PostgreSQL; what it said on SQLite meanwhile follows."; \
	failed=0; TEST_DB=postgresql $(BIN)/coverage run -m pytest --ignore tests/faults $(ARGS) || failed=1; \
	wait $$on_sqlite || failed=1; cat $$log; exit $$failed
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under 95 --include 'timeline/*'
	$(BIN)/coverage report --fail-under 95 --include 'tests/*' --omit 'tests/typing_cases.py,tests/faults/*'

# What is broken on purpose: processes killed, frozen and cut off, each statement died at, races, a thousand tasks in chaos.
# Without coverage, which would take as long again.
faults: install
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; \
	TEST_DB=sqlite $(BIN)/python -m pytest tests/faults $(ARGS) > $$log 2>&1 & on_sqlite=$$!; \
	failed=0; TEST_DB=postgresql $(BIN)/python -m pytest tests/faults $(ARGS) || failed=1; \
	wait $$on_sqlite || failed=1; cat $$log; exit $$failed

# Each Python with each Django that we say it runs on; an interpreter that is not there is left out, with a word.
matrix: install
	$(BIN)/nox $(ARGS)

# 10,000 sign-ups by the site's service, then all due: rows/s scheduled, tasks/s run.
baseline: install
	@$(BIN)/python benchmarks/baseline.py $(ARGS)

# 10,000 due tasks that do nothing through two Celery workers, over Redis on loopback or in REDIS_URL: tasks/s.
throughput: install
	@$(BIN)/python -m benchmarks.throughput $(ARGS)

# Bytes a row and GB a year, on PostgreSQL: the server DATABASE_URL names, or one that comes with a pip package.
sizing: install
	@$(BIN)/python -m benchmarks.sizing $(ARGS)

# What a poll, a claim, a cancel and an entity's page cost at 10,000 to 5,000,000 rows, on PostgreSQL as above.
scale: install
	@$(BIN)/python -m benchmarks.scale $(ARGS)

# 100,000 tasks due in the same second, or with --snapshot held a steady load beside an old snapshot: claims and memory.
herd: install
	@$(BIN)/python -m benchmarks.herd $(ARGS)

# The admin's pages over 1,000,000 tasks, on PostgreSQL as above: ms and queries a page.
admin-pages: install
	@$(BIN)/python -m benchmarks.admin_pages $(ARGS)

# The API's lists over 1,000,000 tasks, on PostgreSQL as above: ms and queries an answer; fails over 300 ms or 12 queries.
api-pages: install
	@$(BIN)/python -m benchmarks.api_pages $(ARGS)

# Ours beside others, each installed into an environment of its own below .bench, and the page of the docs: about 40 minutes.
# For example: make bench ARGS="--runs 3 --sizes 10000,100000 --only oban,timeline_embedded"
bench: install
	@$(BIN)/python -m benchmarks.comparing $(ARGS)

# Ours alone beside the same rows by hand, under three minutes; writes nothing.
bench-quick: install
	@$(BIN)/python -m benchmarks.comparing --quick $(ARGS)

# 10,000 tasks and one fault a second, twenty seeds, by turns over Celery and embedded: figures, and what should not be. Needs
# redis-server and faketime. Seeds that passed, which .chaos remembers, are left out: make chaos ARGS="--seeds 1-4"
chaos: install
	@$(BIN)/python -m tests.faults.chaos.seeds $(ARGS)

clean:
	rm -rf $(VENV) .bench .chaos .demo .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .nox
