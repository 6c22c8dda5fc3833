#!/usr/bin/env bash
# Builds the image and tries it: it starts, answers, is healthy, has no shell, and ends with 0 when told to. Where no
# image can be built (not root, or no buildah and no apt), says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

if ((EUID != 0)) || ! { command -v buildah || command -v apt-get; } >/dev/null; then
  echo "Image: skipped, building one needs root and buildah."
  exit 0
fi
deploy/base-image.sh

buildah=(buildah --storage-driver vfs)
tag=ebbgate-test
"${buildah[@]}" bud --format docker --isolation chroot --pull-never --layers -t "$tag" . || exit 1

container=$("${buildah[@]}" from --pull-never "$tag")
server=
finish() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  "${buildah[@]}" rm "$container" >/dev/null
}
trap finish EXIT

fail() { echo "Image: $*" >&2; exit 1; }
inside() { "${buildah[@]}" run --isolation chroot "$container" -- "$@"; }

user=$("${buildah[@]}" inspect --format '{{.OCIv1.Config.User}}' "$container")
[[ $user == 65532:65532 ]] || fail "runs as '$user', not as 65532"
if inside /bin/sh -c true 2>/dev/null; then fail "has a shell"; fi
[[ $(inside /usr/bin/ebbgated --version) == *[0-9].[0-9]* ]] || fail "ebbgated does not start"

inside /usr/bin/ebbgated --ops-listen 127.0.0.1:7371 &
server=$!
for _ in {1..100}; do
  if inside /usr/bin/ebbgate health >/dev/null 2>&1; then break; fi
  kill -0 "$server" 2>/dev/null || fail "the server ended"
  sleep 0.2
done
inside /usr/bin/ebbgate health || fail "not healthy after 20 s"
inside /usr/bin/ebbgate check api-user alice || fail "no answer to a check"
kill "$server"
wait "$server" || fail "exit code $? after SIGTERM"
server=
echo "Image: built, started, answered, stopped."
