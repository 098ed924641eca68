#!/usr/bin/env bash
# typos.sh: looks for misspelt words in all files. The program comes ready-made from PyPI, once, to target/, because building it
# would take minutes. Skipped if there is no pip to fetch it.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

version=1.52.0
folder=$TARGET/tools/typos-$version

if [[ ! -x $folder/bin/typos ]]; then
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "typos: skipped, python3 has no pip to fetch it (apt-get install python3-pip)"
    exit 0
  fi
  say "fetching typos $version (once)"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: \
    --upgrade --target "$folder" "typos==$version"
fi
"$folder/bin/typos"
