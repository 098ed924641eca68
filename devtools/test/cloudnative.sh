#!/usr/bin/env bash
# cloudnative.sh BUILT: runs README's first example on a server of PG_CONFIG, with the image's folders as CloudNativePG
# mounts them. The server does not find the extension in its own folders. Skipped before version 18.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

built=$1
if (($(pg version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/') < 18)); then
  echo "CloudNativePG: skipped, $(pg version) has no extension_control_path (PG_CONFIG= of 18 or newer)"
  exit 0
fi

servers_in_memory
work=$(server_folder)
trap 'server_stop "$work"; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

mounted=$work/extensions/snowflake_ids
"$here/release/image.sh" "$built" "$mounted"
# The folders are like an image: everyone can read them, and nobody can write to them.
chmod -R a-w,a+rX "$work/extensions"
echo "secret" | keep_secret "$work/password"
server_create "$work" "$(free_port)" "$work/password" "extension_control_path = '$mounted/share:\$system'" \
  "dynamic_library_path = '$mounted/lib:\$libdir'" "listen_addresses = ''"
server_start "$work"
read -r pid <"$work/data/postmaster.pid"
as_root grep -qF "$mounted/lib/snowflake_ids.so" "/proc/$pid/maps" || fail "The server has loaded another library than $mounted/lib has."

sql() {
  PGPASSWORD=secret "$(pg bindir)/psql" --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 \
    --username=demo --dbname=postgres --host="$work" --port="$(sed -n 4p "$work/data/postmaster.pid")"
}
example=$(awk '/^```sql$/ { on = 1; next } /^```/ && on { exit } on' README.md | sql) || {
  cat "$work/log" >&2
  fail "README's first example failed; above is what the server says."
}
[[ $example == *$'1|Ada\n2|Grace' ]] || fail "README's first example printed: $example"
# In a new session the functions load the library, by their own name for it.
id=$(sql <<<"SELECT snowflake_nextval() > (SELECT max(id) FROM events)")
[[ $id == t ]] || fail "An id of a new session is not above those of the first."
echo "CloudNativePG: README's first example runs on $(pg version) with the folders of the image"
