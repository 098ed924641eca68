#!/usr/bin/env bash
# install.sh FOLDER: copies the packaged extension below FOLDER to the folders of PG_CONFIG's server.
# install.sh --uninstall: removes the extension from there, with the scripts of every version.
# DESTDIR, if set, is put before every path.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

dest=${DESTDIR-}
library="$dest$(pg pkglibdir)" scripts="$dest$(pg sharedir)/extension"

# with_rights COMMAND...: runs the command, as root only if this user cannot write.
with_rights() {
  if can_write "$library" && can_write "$scripts"; then
    "$@"
  elif can_become_root; then
    as_root "$@"
  else
    fail "$library and $scripts are not yours to write to, and there is no sudo." \
      "Do this as root, or name a PostgreSQL that is yours: PG_CONFIG=/path/to/bin/pg_config"
  fi
}

# install(1) removes an old file before it writes the new one. Writing into the old file would crash a running server that has
# mapped the library.
install_package() {
  local package=$1
  with_rights install -d "$library" "$scripts"
  with_rights install -m 755 "$package$(pg pkglibdir)"/snowflake_ids.so "$library"
  with_rights install -m 644 "$package$(pg sharedir)"/extension/* "$scripts"
  echo "installed: $library/snowflake_ids.so, $scripts/snowflake_ids.control"
}

if [[ $1 == --uninstall ]]; then
  with_rights rm -f "$library/snowflake_ids.so" "$scripts/snowflake_ids.control" "$scripts"/snowflake_ids--*.sql
else
  install_package "$1"
fi
