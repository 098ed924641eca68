# snowflake_ids: PGXS verbs around cargo-pgrx, the tests and the demo. `make help` lists what is used most.
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
PACKAGE_FEATURES = $(FEATURES) $(if $(filter-out release,$(PROFILE)),--features same_dependencies)
# What devtools/build/arm64.sh builds is in folders of its own.
FOR := $(addprefix -,$(CARGO_BUILD_TARGET))
# A build for tests is never installed for use.
PACKAGE := $(TARGET)/package/pg$(PG_MAJOR)$(FOR)$(if $(filter-out release,$(PROFILE)),-$(PROFILE))
LIBRARY := $(PACKAGE)$(shell $(PG_CONFIG) --pkglibdir 2>/dev/null)/snowflake_ids.so
BUILT_FROM := Cargo.toml Cargo.lock build.rs snowflake_ids.control $(wildcard sql/install/*.sql sql/upgrade/*.sql) \
  $(shell find src core/src core/Cargo.toml core/explain devtools/install-script -type f)

# The builds that packages are made of, and their folder.
SHIPPED := $(TARGET)/shipped/package/pg$(PG_MAJOR)$(FOR)
SHIPPED_LIBRARY := $(SHIPPED)$(shell $(PG_CONFIG) --pkglibdir 2>/dev/null)/snowflake_ids.so
PACKAGES := $(TARGET)/packages$(FOR)

.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.* #+ .*/\1/p' Makefile)

# `make help` prints the lines with two number signs, `make help-all` also those with one. Targets with a SCRIPT, a script below
# devtools with its arguments, have their recipe at the end.

## Build

all: $(LIBRARY) # build the extension for PG_CONFIG, optimised, below target/package; root only has to install it
$(LIBRARY): $(BUILT_FROM)
	@devtools/build/setup.sh --check
	rm -rf $(PACKAGE)
	cargo pgrx package --profile $(PROFILE) $(PACKAGE_FEATURES) $(addprefix --target=,$(CARGO_BUILD_TARGET)) --pg-config $(PGRX_PG_CONFIG_PATH) --out-dir $(PACKAGE)
	@devtools/build/install-script.sh --make $(PACKAGE)

setup: SCRIPT = build/setup.sh ## install what building and testing need
setup-check: SCRIPT = build/setup.sh --check # say what is missing, and install nothing
install: SCRIPT = build/install.sh $(PACKAGE) ## build, and copy into PG_CONFIG's server
uninstall: SCRIPT = build/install.sh --uninstall # remove the extension from PG_CONFIG's server
clean: # remove what was built
	cargo clean

## Try

demo: SCRIPT = demo/demo.sh start ## start a throwaway server with a million rows
demo-stop: SCRIPT = demo/demo.sh stop # stop the demo's server and remove it
demo-cluster: SCRIPT = demo/cluster.sh start ## start five, disturb them, and say what held
demo-cluster-stop: SCRIPT = demo/cluster.sh stop # stop these servers and remove them
status: SCRIPT = demo/status.sh ## write the status page of SERVER='host=...'
status-server: # serve the same page at 127.0.0.1, made again while someone looks; PORT=8765
	@PSQL="$$(command -v psql || echo "$$($(PG_CONFIG) --bindir)/psql")" devtools/demo/status-server.py

## Test

# This profile has assertions, and builds fast. Checks and tests share what it builds.
test check: export PROFILE := dev
test: ## run the tests: of the core, in a server, with servers
	@devtools/test/steps.sh setup test-core test-backend install installcheck isolationcheck test-server
check: ## run the checks: format, clippy, layers, documents ...
	@devtools/test/steps.sh setup fmt-check lint layers shellcheck doc typos install-script-check
fmt-check: ## check that the code is formatted
	cargo fmt --all --check

# Each version of clippy has lints of its own. Warnings are errors under the version that CI has, and others print them.
CI_RUST := 1.95
lint: DENIED = $(if $(filter $(CI_RUST).%,$(shell rustc --version)),-D warnings)
lint: ## run clippy over everything
	cargo clippy --workspace --all-targets $(FEATURES),pg_test -- $(DENIED)
	cargo clippy -p snowflake_ids_core --all-targets --features guards -- $(DENIED)
layers: # check that each module imports only lower ones, and that unsafe code and ways to open tables are in their place
	cargo test -p snowflake_ids_layers
shellcheck: # shellcheck over the scripts
	shellcheck -x .ci/run devtools/bin/* devtools/test/bin/* packaging/deb/prerm $(shell git ls-files --cached --others --exclude-standard '*.sh')
doc: # build the documentation of the code; a broken link is an error
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --document-private-items --workspace --exclude snowflake_ids_bench \
	  $(FEATURES),pg_test

typos: SCRIPT = test/typos.sh # look for misspelt words; skipped if pip is missing
deny: # check licenses and sources of the dependencies; part of `make release`
	@devtools/build/cargo-tool.sh cargo-deny 0.20.2 && cargo deny --locked check licenses bans sources

check-arm64: SCRIPT = build/arm64.sh $(MAKE) all || [[ $$? -eq 3 ]] # build for arm64, with an unpacked Debian for arm64; ARM64_RELEASE (bookworm), RUST_SRC
install-script-check: SCRIPT = build/install-script.sh --check $(PACKAGE) # check the install and upgrade scripts, and that scripts of releases have not changed

test-core: ## test the algorithms, without PostgreSQL
	devtools/test/nextest.sh run -p snowflake_ids_core -p snowflake_ids_explain -p snowflake_ids_install_script --features guards
loom: # test the lock-free parts of the core, under every interleaving
	RUSTFLAGS='--cfg loom' CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
	  cargo test -p snowflake_ids_core --features guards --test loom --target-dir $(TARGET)/loom

miri: SCRIPT = test/miri.sh # test the core's generator under miri, if miri is installed
fuzz: SCRIPT = test/fuzz.sh # feed garbled input to what reads others' data: cargo-fuzz, FUZZ_SECONDS (30) a target; skipped without a nightly Rust
installcheck: SCRIPT = test/installcheck.sh ## run pg_regress on the installed extension
isolationcheck: SCRIPT = test/isolationcheck.sh # test interleavings of sessions, against the installed extension in a throwaway server
test-backend: SCRIPT = test/backend.sh # run the tests inside a server; the build with these tests stays installed
test-server: SCRIPT = test/server.sh $(if $(FILTER),-E '$(FILTER)') ## test with servers; FILTER='test(/^clock::/)'
restores: SCRIPT = test/server.sh --profile long --run-ignored only -E 'test(/^restores::/)' # test data directories with parts from an earlier moment, in all mixes; takes minutes
test-fair: SCRIPT = test/server.sh --profile long --run-ignored only --success-output immediate -E 'test(/^fair::/)' # test what a login without rights can take from other databases; takes minutes
test-upgrade: install # test upgrade scripts: from each release to this version, and from this version to a made-up next one
	cargo test -p snowflake_ids_install_script
	@devtools/test/server.sh -E 'test(/^upgrade::/)'
test-pg-upgrade: SCRIPT = test/pg-upgrade.sh "$(FROM)" "$(TO)" # run pg_upgrade of a cluster that uses the extension: FROM=/path/to/pg_config TO=/path/to/pg_config
test-versions: SCRIPT = test/versions.sh $(VERSIONS) # run the suites on each major version, on servers that it builds; VERSIONS='14 18' runs some, PG_CONFIGS='/path/to/pg_config' names servers of yours
test-versions-smoke: SCRIPT = test/versions.sh --smoke $(or $(VERSIONS),19 18) # test what the newest version is most likely to break: 19, or 18 without its sources; VERSIONS=17 takes another
test-arm64: SCRIPT = build/arm64.sh devtools/test/arm64.sh || [[ $$? -eq 3 ]] # run tests on that arm64 Debian, emulated; takes an hour
test-citus: SCRIPT = ../pg_test/citus/check.sh "$(CITUS)" # run the checks of Citus on a real cluster: CITUS='host=... port=... dbname=...' is its coordinator
test-pgdog: SCRIPT = ../pg_test/pgdog/check.sh "$(PGDOG)" # run the checks of docs/pgdog.md behind a real PgDog: PGDOG='host=... port=... dbname=...' is its address
test-cloudnative: SCRIPT = test/cloudnative.sh $(PACKAGE) # run README's first example on a server that finds the extension in folders of an image; skipped before 18
test-packages: SCRIPT = test/packages.sh $(PACKAGES) $(SHIPPED) # install, upgrade and remove the packages in a fresh root without Rust; skipped if no root can be made
docker-check: SCRIPT = test/docker-check.sh # run hadolint, and what compose.yaml sets up, on servers here; no Docker runs
sqlsmith: SCRIPT = test/sqlsmith.sh # run random SQL for SQLSMITH_SECONDS (120)
chaos: SCRIPT = test/chaos.sh # everything at once in a random order, seed after seed for CHAOS_SECONDS (600); `make test` runs one seed
test-orm: SCRIPT = test/orm.sh $(ORM) # test ORMs, which it installs; ORM='django sqlx' runs some, ORM=django-suite Django's own tests
test-page: SCRIPT = test/page.sh # check the status page in a headless Chromium: console, axe, hostile names, decoding, pictures; installs these tools
test-stock: SCRIPT = test/stock.sh $(WAYS) # run PostgreSQL's own suites beside a server without the library; WAYS='library segment' runs some, SOURCES=/path/to/postgresql names sources of yours
test-partman: SCRIPT = test/partman.sh # run docs/time.md with pg_partman, which it gets from Debian
test-patroni: SCRIPT = test/patroni.sh $(RUN) # run three nodes under Patroni, failovers and switchovers under load; installs Patroni and etcd. RUN='synchronous' runs one
test-monitoring: SCRIPT = test/monitoring.sh # test alerts, exporters and the dashboard: no alert fires in LOAD_SECONDS (30) of load, and each fires in its fault; installs Debian's Prometheus
monitoring: SCRIPT = test/server.sh -E 'test(/^monitoring::.*exporters/)' # write the exporters' queries of the installed extension's views to monitoring/
monitoring: export SNOWFLAKE_IDS_WRITE := 1

## Packages and releases

install-script: SCRIPT = build/install-script.sh --release $(PACKAGE) # write the install script to sql/install, for the commit of a release
reference: install # write docs/reference again: functions, settings, views and errors, as the catalog and the sources have them
	SNOWFLAKE_IDS_WRITE=1 cargo test --lib $(FEATURES),pg_test errors_are_listed
	@SNOWFLAKE_IDS_WRITE=1 devtools/test/server.sh -E 'test(/^reference::/)'

# This build has the release profile, whatever the environment says, and no paths of this machine.
$(SHIPPED_LIBRARY): $(BUILT_FROM) devtools/release/build.sh
	@devtools/build/setup.sh --check
	@devtools/release/build.sh $(SHIPPED)

package-deb: SCRIPT = release/deb.sh $(SHIPPED) $(PACKAGES) ## make Debian packages in target/packages
package-rpm: SCRIPT = release/rpm.sh $(SHIPPED) $(PACKAGES) # make RPM packages beside them, for the PostgreSQL project's own; skipped without rpmbuild
package-tar: SCRIPT = release/tar.sh $(SHIPPED) $(PACKAGES) # make an archive with an install.sh, for any Linux with PostgreSQL's pg_config
package-image: SCRIPT = release/image.sh $(SHIPPED) $(TARGET)/image/pg$(PG_MAJOR)$(FOR) # make the folders of an image for CloudNativePG, in target/image; for 18 and newer
reproducible: SCRIPT = release/reproducible.sh $(PACKAGES) # build the last commit again, elsewhere, and compare the packages byte for byte; takes minutes
docs: SCRIPT = build/book.sh ## make a book of the documents, in target/book
next-version: SCRIPT = release/next-version.sh "$(VERSION)" # begin VERSION=1.1.0 after a release, in all files that name the version; commits nothing

# PG_CONFIGS may be a pattern of files; the shell expands it. The Debian releases ARM64_RELEASES have the versions for arm64. RELEASE_KEY signs the repositories. TRY=1 works before the tag.
ARM64_RELEASES ?= bookworm trixie forky
release: ## check a release, and make its files: PG_CONFIGS='...'
	@devtools/release/release.sh check
	@$(MAKE) --no-print-directory deny
	@for server in $(or $(PG_CONFIGS),$(PG_CONFIG)); do $(MAKE) --no-print-directory PG_CONFIG="$$server" release-files; done
	@for release in $(ARM64_RELEASES); do ARM64_RELEASE=$$release devtools/build/arm64.sh $(MAKE) --no-print-directory release-files; done
	@devtools/release/trees.sh $(TARGET)/release-files

release-files: package-deb package-rpm package-tar reproducible # make those for the major version of PG_CONFIG, built twice
	@[[ $(PG_MAJOR) -lt 18 ]] || $(MAKE) --no-print-directory package-image
	@devtools/release/release.sh files $(PACKAGES) $(TARGET)/image/pg$(PG_MAJOR)$(FOR) $(TARGET)/release-files

## Measure

bench: setup ## measure the cost of an id, into bench/results
	@$(MAKE) --no-print-directory install
	cargo run -p snowflake_ids_bench

help: # print the usual targets
help-all: ## print all targets
help help-all: SIGNS = $(if $(filter help,$@),##,#+)
help help-all:
	@awk -F ':.* $(SIGNS) ' '/^## /{print substr($$0, 4)} /^[a-z0-9-]+:.* $(SIGNS) /{printf "  make %-19s %s\n", $$1, $$2}' Makefile

install install-script install-script-check test-cloudnative: $(LIBRARY)
restores test-fair test-arm64: install
package-deb package-rpm package-tar package-image: $(SHIPPED_LIBRARY)
test-packages: package-deb package-tar
reproducible: package-deb package-rpm package-tar
# `setup` may install the server for which `install` builds, so that one is made by itself.
ON_INSTALLED := demo-cluster sqlsmith chaos test-orm test-stock test-page test-partman test-patroni test-monitoring monitoring
test-versions $(ON_INSTALLED): setup
$(shell sed -nE 's/^([a-z0-9-]+): SCRIPT = .*/\1/p' Makefile):
	$(if $(filter $@,$(ON_INSTALLED)),@$(MAKE) --no-print-directory install)
	@devtools/$(SCRIPT)
