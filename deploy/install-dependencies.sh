#!/usr/bin/env bash
# The one list of Debian and Ubuntu packages that Ebbgate is built from, and the script that installs what is missing.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/install-dependencies.sh [--tests] [--list]

Installs the Debian or Ubuntu packages needed to build Ebbgate, only those that are missing.

  --tests  also what the tests and the checks of .ci/run need
  --list   print the names and install nothing
  --help   this text

Needs root, or sudo.
END
}

build_packages=(
  build-essential cmake ninja-build pkg-config
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libssl-dev
  libspdlog-dev prometheus-cpp-dev libyaml-cpp-dev libcli11-dev libxxhash-dev libsodium-dev libcpp-httplib-dev
  tzdata ca-certificates
)
# clang for the thread-safety build, the fuzzers, the format and the lint; prometheus for promtool, and for
# itself: a test lets it watch a server.
test_packages=(
  libgtest-dev libgmock-dev librapidcheck-dev libgmp-dev libbenchmark-dev
  clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev ccache
  python3 curl openssl faketime prometheus
)

packages=("${build_packages[@]}")
list_only=false
for argument in "$@"; do
  case $argument in
    --tests) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
    --list) list_only=true ;;
    --help | -h) usage; exit 0 ;;
    *) echo "install-dependencies.sh: unknown argument '$argument'; see --help" >&2; exit 2 ;;
  esac
done

if $list_only; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install-dependencies.sh: this needs apt (Debian 12 or later, Ubuntu 24.04 or later)." >&2
  echo "Elsewhere, install the equivalents of these packages by hand: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "Packages: all ${#packages[@]} are installed."
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-dependencies.sh: not root, and there is no sudo. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Packages such as prometheus start a service when they are installed; only their programs are wanted. policy-rc.d is
# how Debian says so.
policy=/usr/sbin/policy-rc.d
policy_is_ours=false
remove_policy() {
  if $policy_is_ours; then "${as_root[@]}" rm -f "$policy"; fi
}
trap remove_policy EXIT
if [[ ! -e $policy ]]; then
  policy_is_ours=true
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

echo "Packages: installing ${#missing[@]}: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0)
if ! "${install[@]}" update; then
  echo "install-dependencies.sh: 'apt-get update' failed; check the network and the files in /etc/apt." >&2
  exit 1
fi
if ! "${install[@]}" install --no-install-recommends "${missing[@]}"; then
  echo "install-dependencies.sh: apt could not install them (see above). If a name is unknown, the release is too" >&2
  echo "old: Debian 12 or later, or Ubuntu 24.04 or later with 'universe', is needed." >&2
  exit 1
fi

# Installed by us just now, so nobody asked for the service: keep it from starting at the next boot too.
if [[ " ${missing[*]} " == *" prometheus "* && -d /run/systemd/system ]]; then
  "${as_root[@]}" systemctl disable --quiet prometheus || true
fi
