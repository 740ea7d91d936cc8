# make demo       the product on SQLite: site, worker, people
# make quick      lint, types, contracts, and the rules that need no database: a minute
# make test       what a newcomer and each change need to be sure: minutes, with Python alone
# make test-all   everything: the second database, faults, chaos, browser, brokers; about half an hour
# make docs       the documentation as a site, in build/docs
# make dev        installs all that developing needs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The tests start hundreds of processes: what one of them has compiled, the others need not.
unexport PYTHONDONTWRITEBYTECODE
# So many processes as there are processors, and one more, as some of them wait for others.
AT_A_TIME := $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")

.PHONY: demo quick test test-all install dev for-test lint types floors checks read rules on-postgresql on-sqlite second faults faults-sqlite newest \
	faults-postgresql coverage pictures foreign djangos-own matrix release paths belongs figures without without-some baseline sizing throughput scale herd operators api-pages \
	every-page owned-on-sqlite fuzz slots settlement bookings bench bench-quick bench-steps bench-limits bench-rates bench-loops bench-machines \
	bench-moves bench-snapshot bench-tasks bench-waits bench-webhooks chaos clean

demo:
	@$(PYTHON) install.py demo
	@$(BIN)/python manage.py demo $(ARGS)

install dev:
	@$(PYTHON) install.py dev

for-test:
	@$(PYTHON) install.py test

# A folder has this name, too.
.PHONY: docs site

# With each link and each anchor looked at: what leads nowhere ends it with an error.
docs:
	@$(PYTHON) install.py docs
	@$(MAKE) --no-print-directory site
	@echo "Open build/docs/index.html in a browser."

site:
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going --jobs auto docs build/docs

# Each of these says what it found when it has ended, and ends the whole with an error if one of them does.
quick: for-test
	@$(call side_by_side,lint types floors rules)

test: for-test
	@$(call beside,read,SIZE=test $(MAKE) --no-print-directory --keep-going on-postgresql on-sqlite)

test-all: install
	@$(BIN)/python -m tests.tools
	@$(call beside,read site figures,$(MAKE) --no-print-directory --keep-going on-postgresql on-sqlite faults second newest without-some djangos-own)

# Some targets at the same time.
side_by_side = failed=$$(mktemp); trap 'rm -f $$failed' EXIT; \
	printf 'part-%s\n' $(1) | FAILED=$$failed xargs -P $(AT_A_TIME) -n 1 $(MAKE) --no-print-directory; \
	if [ -s $$failed ]; then echo "Failed:" $$(cat $$failed); exit 1; fi

part-%:
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; \
	$(MAKE) --no-print-directory --keep-going $* > $$log 2>&1 || echo $* >> $$FAILED; cat $$log

# One target, whose words are shown in the end, beside a command, which is seen while it works.
beside = log=$$(mktemp); trap 'rm -f $$log' EXIT; \
	$(MAKE) --no-print-directory --keep-going $(1) > $$log 2>&1 & beside=$$!; \
	failed=; $(2) || failed=yes; wait $$beside || failed=yes; cat $$log; \
	if [ $$failed ]; then echo "Failed, as said above."; exit 1; fi

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Once more without its cache where that finds something: a cache from before modules moved knows those that are gone.
types:
	$(BIN)/mypy || { rm -rf .mypy_cache && $(BIN)/mypy; }

floors:
	$(BIN)/lint-imports --no-logo

checks:
	$(BIN)/python manage.py makemigrations --check --dry-run --settings tests.settings
	$(BIN)/python manage.py check --fail-level WARNING --settings tests.settings

read: lint types floors checks

# Which tests are asked in which size, and on which database, stands in tests/asking.py.
PYTEST := $(BIN)/python -m pytest -q -n $(AT_A_TIME) --dist loadfile

rules:
	SIZE=quick TEST_DB=sqlite $(BIN)/python -m pytest -q $(ARGS)

# On the server that DATABASE_URL names, or on one that comes with a pip package.
on-postgresql:
	TEST_DB=postgresql $(PYTEST) --ignore tests/faults $(ARGS)

on-sqlite:
	TEST_DB=sqlite $(PYTEST) --ignore tests/faults $(ARGS)

# On a server of another version, SECOND_DATABASE_URL: what PostgreSQL's planner decides, and all else that is not about one database.
second:
	@if [ -z "$(SECOND_DATABASE_URL)" ]; then echo "Without SECOND_DATABASE_URL, no second PostgreSQL is asked."; else \
	DATABASE_URL=$(SECOND_DATABASE_URL) TEST_DB=postgresql $(PYTEST) -m "plans or of_postgresql" --ignore tests/faults $(ARGS); fi

# On SQLite with the newest Python and Django, what `make test` asks there, but for what starts processes: see noxfile.py.
newest:
	@SIZE=test $(BIN)/nox --session newest -- -q -n $(AT_A_TIME) --dist loadfile --ignore tests/faults $(ARGS)

# What is broken on purpose: processes killed, frozen and cut off, each statement died at, races, a thousand tasks in chaos.
faults: faults-sqlite faults-postgresql

faults-sqlite faults-postgresql:
	TEST_DB=$(@:faults-%=%) $(PYTEST) tests/faults $(ARGS)

# Which branches of the package the tests run: make coverage SIZE=test, or SIZE=all, which takes twice as long as without.
coverage: install
	$(BIN)/coverage erase
	SIZE=$(or $(SIZE),all) TEST_DB=postgresql $(BIN)/coverage run -m pytest -q -n $(AT_A_TIME) --dist loadfile --ignore tests/faults $(ARGS)
	SIZE=$(or $(SIZE),all) TEST_DB=sqlite $(BIN)/coverage run -m pytest -q -n $(AT_A_TIME) --dist loadfile --ignore tests/faults $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include 'timeline/*' --fail-under $(if $(filter test,$(SIZE)),88,95)

# The pictures of the docs, taken anew. Needs chromium and chromedriver.
pictures: install
	TEST_DB=sqlite $(BIN)/python -m pytest tests/browser/pictures.py $(ARGS)

# In Wagtail and pretix, as they are published, and others' tests of tasks and jobs, on SQLite and PostgreSQL: docs/how-to/foreign.md. Not part of `make test`.
# For example: make foreign ARGS="wagtail --database sqlite"
foreign: install
	@$(BIN)/python -m tests.foreign $(ARGS)

# Django's own tests of its tasks, on our backend. On PostgreSQL too: make foreign ARGS=django
djangos-own: install
	@$(BIN)/python -m tests.foreign django --database sqlite

# Each Python with each Django that we say it runs on; an interpreter that is not there is left out, with a word.
matrix: install
	$(BIN)/nox $(ARGS)

# Sdist and wheel of what is committed, built in an empty folder, checked, and tried as README says: needs a Redis. In dist.
release: install
	@$(BIN)/python release.py

# How much code is entered on six paths: files, definitions and lines. In seconds, on SQLite.
# What to read of one, in order: make paths ARGS="--detail run"
paths: install
	@$(BIN)/python -m benchmarks.paths $(ARGS)

# How many files name each feature outside of its folder, and how far the package is spread.
belongs: install
	@$(BIN)/python -m benchmarks.belongs $(ARGS)

# The suite on SQLite in a copy that has neither a feature nor its tests, on tables made from the models: what fails, in about a
# minute. All that is asked on PostgreSQL: make without FEATURE=limits DATABASE=postgresql
without: for-test
	@$(BIN)/python -m benchmarks.without $(or $(FEATURE),none) --database $(or $(DATABASE),sqlite) -n $(AT_A_TIME) --dist loadfile $(ARGS)

# Several that can be taken out, at once.
without-some:
	@$(MAKE) --no-print-directory without FEATURE=limits,fan_out,bulk_actions,rates,debounce,sleep,on_failure,django_tasks,ojs,otel

# What make paths and make belongs print.
figures:
	@$(BIN)/python -m benchmarks.paths
	@$(BIN)/python -m benchmarks.belongs

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

# What operators do with many rows among 1,000,000 tasks, on PostgreSQL as above: rows a second of processor time, memory.
operators: install
	@$(BIN)/python -m benchmarks.operators $(ARGS)

# The API's lists over 1,000,000 tasks, on PostgreSQL as above: ms and queries an answer; fails over 300 ms or 12 queries.
api-pages: install
	@$(BIN)/python -m benchmarks.api_pages $(ARGS)

# Every page and list of the admin and the API over 1,000,000 tasks, on PostgreSQL as above: queries and processor time of each;
# fails over 300 ms, over 12 queries, and where a statement reads a large table from end to end. About half an hour.
every-page: install
	@$(BIN)/python -m benchmarks.every_page $(ARGS)

# The API's lists for the owners of 33,000 and 252,000 entities, on SQLite; fails as api-pages does.
owned-on-sqlite: install
	@$(BIN)/python -m benchmarks.owned_on_sqlite $(ARGS)

# 3,000 requests made up from the API's schema, all checks, on SQLite and then on PostgreSQL; make test-all has fewer.
fuzz: install
	FUZZ_CASES=3000 TEST_DB=sqlite $(BIN)/python -m pytest tests/api/test_fuzzing.py $(ARGS)
	FUZZ_CASES=3000 TEST_DB=postgresql $(BIN)/python -m pytest tests/api/test_fuzzing.py $(ARGS)

# Slots of the clock, at every clock change of every zone from 1997 to 2037: about half an hour.
slots: install
	ALL_CLOCK_CHANGES=1 $(BIN)/python -m pytest tests/features/recurring/test_timing_slots.py $(ARGS)

# A thousand nights of the demo's settlement with faults, on SQLite: nothing paid twice. About two minutes.
settlement: install
	NIGHTS=1000 TEST_DB=sqlite $(BIN)/python -m pytest tests/stories/test_from_cron_settlement.py -k ManyNights $(ARGS)

# 10,000 bookings through the demo's portal, on SQLite, with workers killed and somebody who meddles: each is accounted for. They
# come in 20 pieces, each with chances of its own, a database of its own, and ten minutes; what has not ended by then is counted in
# the state it is in. It ends at the first piece in which something does not add up. To go on at the eighth: make bookings FROM=8.
# Others: make bookings PIECES=2 ARGS="--bookings 1000 --within 1800"
FROM ?= 1
PIECES ?= 20
bookings: install
	@for seed in $$(seq $(FROM) $(PIECES)); do \
		echo "Piece $$seed of $(PIECES)"; \
		$(BIN)/python manage.py demo --story booking --no-server --bookings 500 --within 600 --seed $$seed $(ARGS) || exit 1; \
	done

# Ours beside others, each installed into an environment of its own below .bench, and the page of the docs: about 40 minutes.
# For example: make bench ARGS="--runs 3 --sizes 10000,100000 --only oban,timeline_embedded"
# All figures are kept in .bench/results.json, and what the page shows of them in benchmarks/results.json.
bench: install
	@$(BIN)/python -m benchmarks.comparing $(ARGS)

# Ours alone beside the same rows by hand, under three minutes; writes nothing.
bench-quick: install
	@$(BIN)/python -m benchmarks.comparing --quick $(ARGS)

# Steps a second, by turns: ours, the same records by hand, DBOS and Absurd, the latter in environments of their own; a quarter of an hour.
# For example: make bench-steps ARGS="--only timeline,raw --rounds 3 --json steps.json"
bench-steps: install
	@$(BIN)/python -m benchmarks.steps $(ARGS)

# A limit of one over 10,000 keys, and how long a place is idle: about two minutes.
# For example: make bench-limits ARGS="--keys 1000"
bench-limits: install
	@$(BIN)/python -m benchmarks.limits $(ARGS)

# A rate over 10,000 keys, open and braked, beside the same tasks without one: about three minutes.
# For example: make bench-rates ARGS="--keys 1000"
bench-rates: install
	@$(BIN)/python -m benchmarks.rates $(ARGS)

# self.each over a million rows beside the same loop by hand: ms a batch, memory; about three minutes.
# For example: make bench-loops ARGS="--rows 100000"
bench-loops: install
	@$(BIN)/python -m benchmarks.loops $(ARGS)

# 100,000 tasks that wait for an event: what others pay, how fast many are woken, how soon one is; about two minutes.
# For example: make bench-tasks ARGS="--rounds 5 --shared"
bench-tasks: install
	@$(BIN)/python -m benchmarks.tasks $(ARGS)

# For example: make bench-waits ARGS="--waits 10000"
bench-waits: install
	@$(BIN)/python -m benchmarks.waits $(ARGS)

# Lots of tasks beside a session that holds an old snapshot, and free, by turns: tasks a second, ratios; about two minutes.
# For example: make bench-snapshot ARGS="--tasks 10000"
bench-snapshot: install
	@$(BIN)/python -m benchmarks.snapshot $(ARGS)

# Moves that cancel one timer and make another: what one costs, and how many a second; less than a minute.
# For example: make bench-machines ARGS="--members 11000"
bench-machines: install
	@$(BIN)/python -m benchmarks.machines $(ARGS)

# A bare transition with its save beside django-fsm-2 and Viewflow's fsm, which are installed on the side, below .bench.
bench-moves: install
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .bench/moves django-fsm-2 django-viewflow
	@PYTHONPATH=.bench/moves $(BIN)/python -m benchmarks.moves $(ARGS)
# Signed deliveries a second to a receiver on this machine beside a bare client, by turns, and how soon one arrives; half a minute.
# For example: make bench-webhooks ARGS="--deliveries 1000 --rounds 3"
bench-webhooks: install
	@$(BIN)/python -m benchmarks.webhooks $(ARGS)

# 10,000 tasks and one fault a second, twenty seeds, by turns over Celery and embedded: figures, and what should not be. Needs
# redis-server and faketime. Seeds that passed, which .chaos remembers, are left out: make chaos ARGS="--seeds 1-4"
chaos: install
	@$(BIN)/python -m tests.faults.chaos.seeds $(ARGS)

clean:
	rm -rf $(VENV) .bench .chaos .foreign .demo .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .nox
