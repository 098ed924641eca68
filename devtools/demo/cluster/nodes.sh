# The nodes of the demo's cluster: a coordinator and shards, whose ids come from the registry.
# shellcheck shell=bash
# shellcheck source=devtools/demo/cluster/servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/servers.sh"

# The shard of each bucket.
homes=(shard_{1,2,3} shard_{1,2,3} shard_{1,2,3} shard_{1,2,3})

# Makes a server a node of the registry, and takes the node's first id.
node_join() {
  on_with_secrets "$1" --set=registry_port="$(<"$cluster/registry/port")" --file=examples/cluster/node.sql
}

# Creates the tables on a node, and tells the node the shard of each bucket.
node_route() {
  local shard bucket
  {
    for shard in $(printf '%s\n' "${homes[@]}" | sort -u); do meet "$shard"; done
    for bucket in "${!homes[@]}"; do
      echo "CALL place('orders', $bucket, '${homes[bucket]}');"
      echo "CALL place('invoices', $bucket, '${homes[bucket]}');"
    done
  } | on_with_secrets "$1" --file=examples/cluster/schema.sql --file=-
}

# Prints the statement that makes a shard known to a node.
meet() { echo "CALL meet('$1', '$(<"$cluster/$1/port")', :'peer_password');"; }

# shard_fill SHARD BUCKET...: moves buckets to a new shard. The shard that has a bucket moves it, and then the other nodes do.
shard_fill() {
  local shard=$1 nodes=(coordinator shard_{1,2,3}) owners=("${homes[@]}") bucket node
  shift
  for bucket; do homes[bucket]=$shard; done
  node_route "$shard"
  for node in "${nodes[@]}"; do meet "$shard" | on_with_secrets "$node" --file=-; done
  for bucket; do
    bucket_move "${owners[bucket]}" "$bucket" "$shard"
    for node in "${nodes[@]}"; do
      [[ $node == "${owners[bucket]}" ]] || bucket_move "$node" "$bucket" "$shard"
    done
  done
}

# A move gives way to inserts, so it may need several attempts.
bucket_move() {
  local node=$1 bucket=$2 shard=$3 table attempts
  for table in orders invoices; do
    attempts=0
    until on "$node" --command="CALL move('$table', $bucket, '$shard')" 2>"$cluster/$node/move.log"; do
      if ((++attempts == 50)); then
        cat "$cluster/$node/move.log" >&2
        fail "Bucket $bucket of $table does not get away from $node."
      fi
      sleep 0.05
    done
  done
}
