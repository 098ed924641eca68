#!/bin/sh
# install.sh [PG_CONFIG]: installs snowflake_ids into the PostgreSQL @MAJOR@ that this pg_config describes.
# install.sh --uninstall [PG_CONFIG]: removes it from that PostgreSQL.
# Without the argument, the variable PG_CONFIG names the pg_config. Without both, it is the first pg_config of PostgreSQL @MAJOR@
# in the folders of the usual packages and in PATH. DESTDIR, if set, is put before every path.
set -eu

major=@MAJOR@ version=@VERSION@ machine=@MACHINE@

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

major_of() { "$1" --version 2>/dev/null | sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p'; }

find_pg_config() {
    for candidate in "/usr/lib/postgresql/$major/bin/pg_config" "/usr/pgsql-$major/bin/pg_config" \
        "/usr/local/pgsql/bin/pg_config" "$(command -v pg_config || true)"; do
        if [ -x "$candidate" ] && [ "$(major_of "$candidate")" = "$major" ]; then
            echo "$candidate"
            return
        fi
    done
}

uninstall=
if [ "${1-}" = --uninstall ]; then
    uninstall=yes
    shift
fi
case ${1-} in
    -*) fail "usage: $0 [--uninstall] [PG_CONFIG]" ;;
esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
pg_config=${1:-${PG_CONFIG:-$(find_pg_config)}}
[ -n "$pg_config" ] || fail "No pg_config of PostgreSQL $major was found. Name it: $0 /path/to/bin/pg_config" \
    "The packages postgresql-client-$major (Debian, Ubuntu) and postgresql$major-devel (RPM) have one."
command -v "$pg_config" >/dev/null || fail "$pg_config is no program that can be run."
found=$(major_of "$pg_config")
[ "$found" = "$major" ] || fail "$pg_config belongs to PostgreSQL ${found:-of an unknown version}. These files are for PostgreSQL $major:" \
    "take the archive for ${found:-your version}, or name a pg_config of PostgreSQL $major: $0 /path/to/bin/pg_config"

library=${DESTDIR-}$("$pg_config" --pkglibdir)
scripts=${DESTDIR-}$("$pg_config" --sharedir)/extension
for folder in "$library" "$scripts"; do
    existing=$folder
    until [ -e "$existing" ]; do existing=$(dirname "$existing"); done
    [ -w "$existing" ] || fail "You cannot write to $folder. Run this as root or as the owner of that folder."
done

if [ -n "$uninstall" ]; then
    rm -f "$library/snowflake_ids.so" "$scripts/snowflake_ids.control" "$scripts"/snowflake_ids--*.sql
    cat <<END
Removed snowflake_ids from $library and $scripts.
Take snowflake_ids out of shared_preload_libraries before the next restart: PostgreSQL does not start without a library that is
listed there.
END
    exit
fi

[ "$(uname -m)" = "$machine" ] || fail "These files are for $machine, and this machine is $(uname -m): take the archive for it."
missing=$(ldd "$here/lib/snowflake_ids.so" 2>&1 | grep 'not found' || true)
[ -z "$missing" ] || fail "The library was built on a newer system. This one lacks:" "$missing" "Build from source here."

# install(1) replaces a file. Writing into the old file would crash a running server that has mapped the library.
install -d "$library" "$scripts"
install -m 755 "$here/lib/snowflake_ids.so" "$library"
install -m 644 "$here"/extension/snowflake_ids* "$scripts"

cat <<END
Installed snowflake_ids $version into $library and $scripts.

Next:
1. Preload the library, beside those that SHOW shared_preload_libraries names ('first', 'snowflake_ids'):
     psql -c "ALTER SYSTEM SET shared_preload_libraries = 'snowflake_ids'"
2. Restart the server.
3. In each database: CREATE EXTENSION snowflake_ids;
   where it exists already: ALTER EXTENSION snowflake_ids UPDATE;
END
