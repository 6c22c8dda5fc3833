#!/usr/bin/env bash
# Collects what the image holds: the programs, the shared libraries they load, time zones, certificate authorities, and
# the limits to start with. Run by the Dockerfile.
set -euo pipefail

if (($# != 2)); then
  echo "Usage: deploy/collect-image.sh BIN_DIRECTORY IMAGE_DIRECTORY" >&2
  exit 2
fi
bin=$1
image=$2

mkdir -p "$image/usr/bin" "$image/etc/ebbgate" "$image/usr/share" "$image/etc/ssl/certs"
install -s -m 755 "$bin/ebbgated" "$bin/ebbgate" "$image/usr/bin/"

# ldd names each library with its path, and the loader by its path alone.
ldd "$bin/ebbgated" "$bin/ebbgate" | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do
  install -D -m 755 "$library" "$image$library"
done

cp -a /usr/share/zoneinfo "$image/usr/share/"
cp -L /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/"
echo 'ebbgate:x:65532:65532:Ebbgate:/:/nonexistent' >"$image/etc/passwd"
echo 'ebbgate:x:65532:' >"$image/etc/group"
echo 'hosts: files dns' >"$image/etc/nsswitch.conf"
cp "$(dirname "$0")/examples/limits.yaml" "$image/etc/ebbgate/"
