# Two commands do all the set-up on a machine with Python 3.11 or newer: `make run` and `make test`.  As root or not.
# PYTHON=python3.12 make run   chooses another Python; remove .venv first when there is one already.

PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: help run demo test check format bench clean
.DELETE_ON_ERROR:

help:
	@echo "make run    start Lanes here, in the foreground, with the embedded Postgres"
	@echo "make demo   the same against a small internet on loopback: watch Chapters arrive"
	@echo "make test   run the tests, a process a core  (ARGS='-k name' passes arguments on to pytest, -n0 runs one process)"
	@echo "make check  format, lint, strict types, import contracts"
	@echo "make format rewrite the code the way check wants it"
	@echo "make bench  measure; see bench/README.md"
	@echo "make clean  remove the virtual environment and caches, never var/"

# The environment of var/lanes.env, where the one that `make` was called with wins.
run: .venv/.all
	@mkdir -p var/log var/sites; \
	running=$$($(BIN)/supervisorctl -c supervisord.conf pid 2> /dev/null); left=90; \
	while case "$$running" in *SHUTDOWN_STATE*) true;; *) false;; esac; do \
		[ $$left -lt 90 ] || echo "Lanes is still stopping here: this waits for its end, at most 90 s."; \
		[ $$left -gt 0 ] || { echo "Lanes has not stopped: var/log/supervisord.log says what it waits for." >&2; exit 2; }; \
		left=$$((left - 1)); sleep 1; running=$$($(BIN)/supervisorctl -c supervisord.conf pid 2> /dev/null); \
	done; \
	if [ "$$running" -gt 0 ] 2> /dev/null; then \
		echo "Lanes runs here already (pid $$running). Stop it with:  $(BIN)/supervisorctl shutdown" >&2; exit 2; \
	fi; \
	given=$$(export -p); if [ -f var/lanes.env ]; then set -a; . ./var/lanes.env; set +a; eval "$$given"; fi; \
	if [ -z "$$LANES_CONTACT" ] && [ -t 0 ]; then \
		echo "Every request names an e-mail or web address at which a site's owner can reach you."; \
		printf "Your contact address: "; read -r LANES_CONTACT; export LANES_CONTACT; \
	elif [ -z "$$LANES_CONTACT" ]; then \
		echo "Nothing is polled without a contact address. Give yours:  LANES_CONTACT=you@example.org make run" >&2; exit 2; \
	fi; \
	places=$$($(BIN)/python -m lanes.settings) || exit 2; \
	grep -Eqs '^(export +)?LANES_CONTACT=' var/lanes.env || \
		(umask 077; printf "LANES_CONTACT='%s'\n" "$$(printf %s "$$LANES_CONTACT" | sed "s/'/'\\\\''/g")" >> var/lanes.env); \
	printf "Lanes starts here, with:\n%s\n" "$$places"; \
	echo "  logs       $(CURDIR)/var/log"; \
	echo "  settings   $(CURDIR)/var/lanes.env (deploy/lanes.env.example explains each)"; \
	echo "In a second terminal:"; \
	echo "  $(BIN)/lanes add URL           follow a Series"; \
	echo "  $(BIN)/lanes status            how things are"; \
	echo "  $(BIN)/supervisorctl status    the processes"; \
	echo "Ctrl-C here stops everything. If this terminal is closed they go on; $(BIN)/supervisorctl shutdown stops them."; \
	( for second in $$(seq 60); do sleep 2; \
		$(BIN)/supervisorctl -c supervisord.conf status lane-feeds 2> /dev/null | grep -q RUNNING \
			&& $(BIN)/lanes list > /dev/null 2>&1 && { echo "Lanes is up."; break; }; \
	done ) & \
	exec $(BIN)/supervisord --nodaemon --silent --configuration supervisord.conf --user "$$(id -u)"

demo: .venv/.test
	@exec $(BIN)/lanes demo

test: .venv/.test
	$(BIN)/python -m pytest --numprocesses=logical --dist=worksteal $(ARGS)

check: .venv/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy lanes browser_sidecar
	$(BIN)/lint-imports

format: .venv/.check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.test
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# One stamp per set of extras (all, test, check): a second `make` has nothing to do.
.venv/.%: setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || \
		{ echo "Lanes needs Python 3.11 or newer, and $(PYTHON) is not. Name another: PYTHON=python3.12 make ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || \
		{ echo "$(PYTHON) cannot make virtual environments: apt install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv .venv
