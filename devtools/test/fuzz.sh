#!/usr/bin/env bash
# Fuzzes each target of core/fuzz with cargo-fuzz for FUZZ_SECONDS, if a nightly Rust is installed. Inputs that reach new code, and
# inputs that make a target fail, are kept in target/fuzz. The next run begins with these inputs.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

if ! RUSTUP_AUTO_INSTALL=0 cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzz: skipped, there is no nightly Rust (rustup toolchain install nightly); make test-core runs the targets without it"
  exit 0
fi
"$here/build/cargo-tool.sh" cargo-fuzz 0.13.1

folder=$TARGET/fuzz
build=(--fuzz-dir core/fuzz --target-dir "$folder/build")
export CARGO_TARGET_DIR=$folder/build
mapfile -t targets < <(cargo +nightly run -q --manifest-path core/fuzz/Cargo.toml --bin seeds -- "$folder/seeds")
cargo +nightly fuzz build "${build[@]}" any
failed=()
for target in "${targets[@]}"; do
  say "$target"
  mkdir -p "$folder/corpus/$target" "$folder/failed/$target"
  TARGET_NAME=$target cargo +nightly fuzz run "${build[@]}" any "$folder/corpus/$target" "$folder/seeds/$target" -- \
    -max_total_time="${FUZZ_SECONDS:-30}" -artifact_prefix="$folder/failed/$target/" -verbosity=0 || failed+=("$target")
done
[[ ${#failed[@]} -eq 0 ]] || fail "These failed: ${failed[*]}. The inputs are in $folder/failed."
