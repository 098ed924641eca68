# snowflake_ids: PGXS verbs around cargo-pgrx, the tests and the demo. `make help` lists them.
#
#   PG_CONFIG   the pg_config of the server to build for, install into and test with
#   DESTDIR     put before every path that `make install` writes to

PG_CONFIG ?= pg_config
export PG_CONFIG DESTDIR

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

export TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export PATH := $(CURDIR)/devtools/bin:$(TARGET)/tools/bin:$(PATH):$(HOME)/.cargo/bin

# The major version of PG_CONFIG's server. PG_CONFIG is called each time, because `make setup` may install the server.
export PG_MAJOR = $(shell $(PG_CONFIG) --version 2>/dev/null | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
FEATURES = --no-default-features --features pg$(PG_MAJOR)

# pgrx asks PG_CONFIG instead of a ~/.pgrx/config.toml, so that the user's own file has no effect.
export PGRX_PG_CONFIG_PATH = $(abspath $(shell command -v $(PG_CONFIG)))
export PGRX_HOME := $(TARGET)/no-pgrx-home

# build.rs gives the linker flag that cargo-pgrx would give through rustflags. A flag in rustflags would make cargo build every
# dependency again.
export CARGO_PGRX_DISABLE_GC_SECTIONS_WORKAROUND := 1

PROFILE ?= release
# The features of a build for tests, which shares its dependencies with `cargo pgrx test`.
PACKAGE_FEATURES = $(FEATURES)$(if $(filter-out release,$(PROFILE)),$(COMMA)same_dependencies)
COMMA := ,
# test-versions.sh sets other folders. A build for tests is never installed for use.
PACKAGE := $(TARGET)/package/pg$(PG_MAJOR)$(if $(filter-out release,$(PROFILE)),-$(PROFILE))
LIBRARY := $(PACKAGE)$(shell $(PG_CONFIG) --pkglibdir 2>/dev/null)/snowflake_ids.so
SOURCES := Cargo.toml Cargo.lock build.rs snowflake_ids.control $(wildcard sql/install/*.sql sql/upgrade/*.sql) \
  $(shell find src core/src core/Cargo.toml core/explain devtools/install-script -type f)

# The builds that packages are made of, and their folder.
SHIPPED := $(TARGET)/shipped/package/pg$(PG_MAJOR)
SHIPPED_LIBRARY := $(SHIPPED)$(shell $(PG_CONFIG) --pkglibdir 2>/dev/null)/snowflake_ids.so
PACKAGES := $(TARGET)/packages

.PHONY: all setup setup-check install uninstall clean help \
  demo demo-stop demo-cluster demo-cluster-stop status status-server monitoring \
  test fmt-check lint layers shellcheck doc typos deny check-arm64 test-core loom miri fuzz \
  installcheck isolationcheck install-script install-script-check reference test-backend test-server test-versions-smoke restores test-fair \
  sqlsmith chaos test-versions test-orm test-patroni test-citus test-pgdog test-page test-monitoring test-upgrade test-pg-upgrade \
  package-deb package-rpm package-tar package-image test-packages test-cloudnative docker-check reproducible docs release release-files next-version \
  bench

## Build

all: $(LIBRARY) ## build the extension for PG_CONFIG, optimised, packaged below target/package

# `make && sudo make install` works, because root only has to copy.
$(LIBRARY): $(SOURCES)
	@devtools/build/setup.sh --check
	rm -rf $(PACKAGE)
	cargo pgrx package --profile $(PROFILE) $(PACKAGE_FEATURES) --pg-config $(PGRX_PG_CONFIG_PATH) --out-dir $(PACKAGE)
	@devtools/build/install-script.sh --make $(PACKAGE)

setup: ## install what building and testing need and this machine does not have
	@devtools/build/setup.sh

setup-check: ## say what is missing, and install nothing
	@devtools/build/setup.sh --check

install: $(LIBRARY) ## copy the extension into PG_CONFIG's server (restart it afterwards)
	@devtools/build/install.sh $(PACKAGE)

uninstall: ## remove the extension from PG_CONFIG's server
	@devtools/build/install.sh --uninstall

clean: ## remove what was built
	cargo clean

## Try

demo: ## start a throwaway server with a sharded table of a million rows, invoices, and a table for the browser
	@devtools/demo/demo.sh start

demo-stop: ## stop the demo's server and remove it
	@devtools/demo/demo.sh stop

demo-cluster: setup ## five throwaway servers: a registry, a coordinator and shards, in trouble under load; prints what held
	@$(MAKE) --no-print-directory install
	@devtools/demo/cluster.sh start

demo-cluster-stop: ## stop these servers and remove them
	@devtools/demo/cluster.sh stop

status: export SERVER := $(SERVER)
status: ## write the status page of any server to target/status.html; SERVER='host=... dbname=...' names the server
	@devtools/demo/status.sh

status-server: export SERVER := $(SERVER)
status-server: export PORT := $(PORT)
status-server: ## serve the same page at 127.0.0.1, made again while someone looks; PORT=8765
	@PSQL="$$(command -v psql || echo "$$($(PG_CONFIG) --bindir)/psql")" devtools/demo/status-server.py

## Test

TESTS := setup test-core test-backend install installcheck isolationcheck test-server
CHECKS := setup fmt-check lint layers shellcheck doc typos install-script-check

# This profile has assertions, and builds faster than the release profile. Checks and tests share what it builds.
test check: export PROFILE := dev
test: ## run the tests: of the core, in a server, with servers
	@devtools/test/steps.sh $(TESTS)

check: ## run the checks: format, clippy, layers, scripts, documentation, spelling, install script
	@devtools/test/steps.sh $(CHECKS)

fmt-check: ## check that the code is formatted
	@echo '== formatting'
	cargo fmt --all --check

# Each version of clippy has lints of its own. Warnings are errors under the version that CI has, and others print them.
CI_RUST := 1.95
lint: DENIED = $(if $(filter $(CI_RUST).%,$(shell rustc --version)),-D warnings)
lint: ## run clippy over everything; under the Rust of CI, warnings are errors
	@echo '== clippy'
	cargo clippy --workspace --all-targets $(FEATURES),pg_test -- $(DENIED)
	cargo clippy -p snowflake_ids_core --all-targets --features guards -- $(DENIED)

layers: ## check that each module imports only lower ones, and that unsafe code and ways to open tables are in their place
	@echo '== layers'
	cargo test -p snowflake_ids_layers

shellcheck: ## shellcheck over the scripts
	@echo '== shellcheck'
	shellcheck -x .ci/run devtools/bin/sudo devtools/bin/cargo monitoring/*.sh packaging/deb/prerm packaging/tar/*.sh devtools/*.sh devtools/*/*.sh devtools/*/*/*.sh pg_test/citus/*.sh pg_test/pgdog/*.sh pg_test/packages/*.sh packaging/docker/*.sh

doc: ## build the documentation of the code; a broken link is an error
	@echo '== cargo doc'
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --document-private-items --workspace --exclude snowflake_ids_bench \
	  $(FEATURES),pg_test

typos: ## look for misspelt words; skipped if pip is missing
	@echo '== typos'
	@devtools/test/typos.sh

deny: ## check licenses and sources of the dependencies; part of `make release`, not of `make test`
	@echo '== dependencies'
	@devtools/build/cargo-tool.sh cargo-deny 0.20.2
	cargo deny --locked check licenses bans sources

check-arm64: ## type-check for arm64; skipped without the standard library's source (RUST_SRC) or headers; not part of `make test`
	@echo '== arm64'
	@devtools/test/check-arm64.sh

test-core: ## test the algorithms, without PostgreSQL
	@echo '== core: unit, property and thread tests, and the simulation'
	devtools/test/nextest.sh run -p snowflake_ids_core -p snowflake_ids_explain -p snowflake_ids_install_script --features guards

loom: ## test the lock-free parts of the core, under every interleaving
	@echo '== core: loom'
	RUSTFLAGS='--cfg loom' CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
	  cargo test -p snowflake_ids_core --features guards --test loom --target-dir $(TARGET)/loom

fuzz: ## feed garbled input to what reads others' data: cargo-fuzz, FUZZ_SECONDS (30) a target; skipped without a nightly Rust
	@echo '== core: fuzzing'
	@devtools/test/fuzz.sh

sqlsmith: setup ## run random SQL for SQLSMITH_SECONDS (120) against the installed extension; not part of `make test`
	@$(MAKE) --no-print-directory install
	@echo '== sqlsmith'
	@devtools/test/sqlsmith.sh

chaos: setup ## everything at once in a random order, seed after seed for CHAOS_SECONDS (600); `make test` runs one seed
	@$(MAKE) --no-print-directory install
	@echo '== chaos'
	@devtools/test/chaos.sh

miri: ## test the core's generator under miri, if miri is installed
	@echo '== core: miri'
	@devtools/test/miri.sh

test-backend: ## run the tests inside a server; the build with these tests stays installed
	@echo '== inside a server'
	@devtools/test/backend.sh

installcheck: ## run pg_regress against the installed extension, in a throwaway server
	@echo '== pg_regress'
	@devtools/test/installcheck.sh

isolationcheck: ## test interleavings of sessions, against the installed extension in a throwaway server
	@echo '== isolation'
	@devtools/test/isolationcheck.sh

test-server: ## test restarts, clocks, sessions: the installed extension in throwaway servers; FILTER='test(/^clock::/)' runs a part
	@echo '== with servers'
	@devtools/test/server.sh $(if $(FILTER),-E '$(FILTER)')

test-versions: setup ## run the suites on each major version, on servers that it builds; VERSIONS='14 18' runs some, PG_CONFIGS='/path/to/pg_config' names servers of yours; not part of `make test`
	@echo '== versions'
	@devtools/test/versions.sh $(VERSIONS)

test-versions-smoke: ## test what the newest version is most likely to break, on a server that it builds: 19, or 18 if the sources of 19 cannot be had; VERSIONS=17 takes another
	@echo '== versions: smoke'
	@devtools/test/versions.sh --smoke $(or $(VERSIONS),19 18)

test-orm: setup ## test ORMs against the installed extension; installs them first. ORM='django sqlx' runs some; not part of `make test`
	@$(MAKE) --no-print-directory install
	@echo '== ORMs'
	@devtools/test/orm.sh $(ORM)

test-page: setup ## check the status page in a headless Chromium: console, axe, hostile names, decoding, pictures; installs these tools; not part of `make test`
	@$(MAKE) --no-print-directory install
	@echo '== status page'
	@devtools/test/page.sh

test-partman: setup ## run docs/time.md with pg_partman, which it gets from Debian; not part of `make test`
	@$(MAKE) --no-print-directory install
	@echo '== pg_partman'
	@devtools/test/partman.sh

test-patroni: setup ## run three nodes under Patroni, failovers and switchovers under load; installs Patroni and etcd. RUN='synchronous' runs one; not part of `make test`
	@$(MAKE) --no-print-directory install
	@echo '== Patroni'
	@devtools/test/patroni.sh $(RUN)

test-monitoring: setup ## test alerts, exporters and the dashboard with Debian's Prometheus: no alert fires in LOAD_SECONDS (30) of load, and each fires in its fault; installs both packages; not part of `make test`
	@$(MAKE) --no-print-directory install
	@echo '== monitoring'
	@devtools/test/monitoring.sh

monitoring: setup ## write the exporters' queries of the installed extension's views to monitoring/
	@$(MAKE) --no-print-directory install
	SNOWFLAKE_IDS_WRITE=1 devtools/test/server.sh -E 'test(/^monitoring::.*exporters/)'

test-citus: ## run the checks of Citus on a real cluster: CITUS='host=... port=... dbname=...' is its coordinator; not part of `make test`
	@echo '== Citus'
	@pg_test/citus/check.sh "$(CITUS)"

test-pgdog: ## run the checks of docs/pgdog.md behind a real PgDog: PGDOG='host=... port=... dbname=...' is its address; not part of `make test`
	@echo '== PgDog'
	@pg_test/pgdog/check.sh "$(PGDOG)"

test-upgrade: install ## test upgrade scripts: from each release to this version, and from this version to a made-up next one; part of `make test-server`
	@echo '== upgrades'
	cargo test -p snowflake_ids_install_script
	@devtools/test/server.sh -E 'test(/^upgrade::/)'

test-pg-upgrade: ## run pg_upgrade of a cluster that uses the extension: FROM=/path/to/pg_config TO=/path/to/pg_config; not part of `make test`
	@echo '== pg_upgrade'
	@devtools/test/pg-upgrade.sh "$(FROM)" "$(TO)"

restores: install ## test data directories with parts from an earlier moment, in all mixes; takes minutes, not part of `make test`
	@echo '== restores'
	@devtools/test/server.sh --profile long --run-ignored only -E 'test(/^restores::/)'

test-fair: install ## test what a login without rights can take from other databases; takes minutes, not part of `make test`
	@echo '== fair'
	@devtools/test/server.sh --profile long --run-ignored only --success-output immediate -E 'test(/^fair::/)'

install-script-check: $(LIBRARY) ## check the install and upgrade scripts, and that scripts of releases have not changed
	@echo '== install script'
	@devtools/build/install-script.sh --check $(PACKAGE)

install-script: $(LIBRARY) ## write the install script to sql/install, for the commit of a release
	@devtools/build/install-script.sh --release $(PACKAGE)

reference: install ## write docs/reference again: functions, settings, views and errors, as the catalog and the sources have them
	SNOWFLAKE_IDS_WRITE=1 cargo test --lib $(FEATURES),pg_test errors_are_listed
	@SNOWFLAKE_IDS_WRITE=1 devtools/test/server.sh -E 'test(/^reference::/)'

## Packages and releases

# This build has the release profile, whatever the environment says, and no paths of this machine.
$(SHIPPED_LIBRARY): $(SOURCES) devtools/release/build.sh
	@devtools/build/setup.sh --check
	@devtools/release/build.sh $(SHIPPED)

package-deb: $(SHIPPED_LIBRARY) ## make Debian packages for PG_CONFIG's major version, in target/packages
	@echo '== Debian packages'
	@devtools/release/deb.sh $(SHIPPED) $(PACKAGES)

package-rpm: $(SHIPPED_LIBRARY) ## make RPM packages beside them, for the PostgreSQL project's own; skipped without rpmbuild
	@echo '== RPM packages'
	@devtools/release/rpm.sh $(SHIPPED) $(PACKAGES)

package-tar: $(SHIPPED_LIBRARY) ## make an archive with an install.sh beside them, for any Linux with PostgreSQL's pg_config
	@echo '== archive'
	@devtools/release/tar.sh $(SHIPPED) $(PACKAGES)

package-image: $(SHIPPED_LIBRARY) ## make the folders of an image for CloudNativePG, in target/image; for 18 and newer
	@echo '== folders of an image'
	@devtools/release/image.sh $(SHIPPED) $(TARGET)/image/pg$(PG_MAJOR)

test-cloudnative: $(LIBRARY) ## run README's first example on a server that finds the extension in such folders; skipped before 18
	@echo '== CloudNativePG'
	@devtools/test/cloudnative.sh $(PACKAGE)

test-packages: package-deb package-tar ## install, upgrade and remove the packages with apt, dnf and install.sh in a fresh root without Rust; skipped if no root can be made
	@echo '== packages'
	@devtools/test/packages.sh $(PACKAGES) $(SHIPPED)

docker-check: ## run hadolint, and what compose.yaml sets up, on servers here; no Docker runs
	@echo '== Docker'
	@devtools/test/docker-check.sh

reproducible: package-deb package-rpm package-tar ## build the last commit again, elsewhere, and compare the packages byte for byte; takes minutes
	@echo '== built again'
	@devtools/release/reproducible.sh $(PACKAGES)

docs: ## make a book of the documents with a search, below target/book; its links are checked
	@echo '== book'
	@devtools/build/book.sh

# PG_CONFIGS may be a pattern of files; the shell expands it.
release: ## check that the last commit is a release, and put its files below target/release-files, with repositories signed by RELEASE_KEY; PG_CONFIGS='/usr/lib/postgresql/*/bin/pg_config' names the servers; TRY=1 before the tag
	@devtools/release/release.sh check
	@$(MAKE) --no-print-directory deny
	@for server in $(or $(PG_CONFIGS),$(PG_CONFIG)); do $(MAKE) --no-print-directory PG_CONFIG="$$server" release-files; done
	@devtools/release/trees.sh $(TARGET)/release-files

# The files for the major version of PG_CONFIG, built twice.
release-files: package-deb package-rpm package-tar reproducible
	@[[ $(PG_MAJOR) -lt 18 ]] || $(MAKE) --no-print-directory package-image
	@devtools/release/release.sh files $(PACKAGES) $(TARGET)/image/pg$(PG_MAJOR) $(TARGET)/release-files

next-version: ## begin VERSION=1.1.0 after a release, in all files that name the version; commits nothing
	@devtools/release/next-version.sh "$(VERSION)"

## Measure

bench: setup ## measure what an id costs, compared; results in bench/results
	@$(MAKE) --no-print-directory install
	cargo run -p snowflake_ids_bench

help: ## print this list
	@awk -F ':.*## ' '/^## /{print "\n" substr($$0, 4)} /^[a-z0-9-]+:.*## /{printf "  make %-22s %s\n", $$1, $$2}' Makefile
