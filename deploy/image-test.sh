#!/usr/bin/env bash
# Builds the image and tries it: it starts, answers, is healthy, has no shell, and ends with 0 when told to.
#
#   deploy/image-test.sh [TAG]   with TAG: tries that image, and builds none
#
# Where no image can be built (not root, or no buildah and no apt), says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

if ((EUID != 0)) || ! { command -v buildah || command -v apt-get; } >/dev/null; then
  echo "Image: skipped, building one needs root and buildah."
  exit 0
fi
buildah=(buildah --storage-driver vfs)
tag=${1:-}
if [[ -z $tag ]]; then
  tag=ebbgate-test
  deploy/base-image.sh
  "${buildah[@]}" bud --format docker --isolation chroot --pull-never -t "$tag" .
fi

container=$("${buildah[@]}" from --pull-never "$tag")
server=
finish() {
  [[ -z $server ]] || kill "$(youngest "$server")" 2>/dev/null || true
  "${buildah[@]}" rm "$container" >/dev/null
}
trap finish EXIT

# The last of a process's line of children.
youngest() {
  local process=$1 child
  while child=$(pgrep -o -P "$process"); do process=$child; done
  echo "$process"
}
fail() { echo "Image: $*" >&2; exit 1; }
inside() { "${buildah[@]}" run --isolation chroot "$container" -- "$@"; }

user=$("${buildah[@]}" inspect --format '{{.OCIv1.Config.User}}' "$container")
[[ $user == 65532:65532 ]] || fail "runs as '$user', not as 65532"
if inside /bin/sh -c true 2>/dev/null; then fail "has a shell"; fi
[[ $(inside /usr/bin/ebbgated --version) == *[0-9].[0-9]* ]] || fail "ebbgated does not start"

# The network is the machine's own, so ports that are hopefully free.
port=$((20000 + RANDOM % 10000))
inside /usr/bin/ebbgated --listen "127.0.0.1:$port" --ops-listen "127.0.0.1:$((port + 1))" \
  --admin-listen "127.0.0.1:$((port + 2))" &
server=$!
ask() { inside /usr/bin/ebbgate "$@" --server "127.0.0.1:$port"; }
for _ in {1..100}; do
  if ask health >/dev/null 2>&1; then break; fi
  kill -0 "$server" 2>/dev/null || fail "the server ended"
  sleep 0.2
done
ask health || fail "not healthy after 20 s"
ask check api-user alice || fail "no answer to a check"
# buildah passes no signals on: tell the server itself, and buildah hands back its exit code.
kill "$(youngest "$server")"
wait "$server" || fail "exit code $? after SIGTERM"
server=
echo "Image: built, started, answered, stopped."
