#!/usr/bin/env bash
# Makes the base image that the Dockerfile starts from out of the machine's own Debian packages, for places where no
# container registry can be reached.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/base-image.sh [TAG]

Makes a minimal Debian 12 image for buildah (default tag docker.io/library/debian:bookworm-slim) with debootstrap, from
the package source in /etc/apt. Does nothing if buildah has an image of that name. Needs root; installs buildah and
debootstrap where they are missing.
END
}

case ${1:-} in
  --help | -h) usage; exit 0 ;;
esac
tag=${1:-docker.io/library/debian:bookworm-slim}

if ((EUID != 0)); then
  echo "base-image.sh: needs root" >&2
  exit 1
fi
if ! command -v buildah >/dev/null || ! command -v debootstrap >/dev/null; then
  apt-get -q update
  DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends buildah debootstrap
fi
# No engine, no overlay: plain folders work everywhere, in a container too.
buildah=(buildah --storage-driver vfs)
if "${buildah[@]}" images --quiet "$tag" >/dev/null 2>&1; then
  echo "Base image: $tag is there."
  exit 0
fi

# The first source of Debian's own packages, in the one-line or in the deb822 form.
source_url() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^(http|file|copy)/) {print $i; break}}'
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '$1 == "URIs:" {print $2}'
}
mirror=$(source_url | grep -m 1 -E '/debian/?$' || true)
if [[ -z $mirror ]]; then
  echo "base-image.sh: no source of Debian packages (ending in /debian) in /etc/apt" >&2
  exit 1
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
echo "Base image: making $tag from $mirror"
debootstrap --variant=minbase bookworm "$root/image" "$mirror" >"$root/log" 2>&1 || {
  tail -n 20 "$root/log" >&2
  exit 1
}
rm -rf "$root/image/var/cache/apt/archives/"*.deb
container=$("${buildah[@]}" from scratch)
"${buildah[@]}" add --quiet "$container" "$root/image" / >/dev/null
"${buildah[@]}" commit --quiet "$container" "$tag" >/dev/null
"${buildah[@]}" rm "$container" >/dev/null
echo "Base image: made $tag"
