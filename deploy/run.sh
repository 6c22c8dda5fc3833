#!/usr/bin/env bash
# From a fresh checkout to a running Ebbgate: installs what is missing, builds, and starts the server.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/steps.sh
source deploy/steps.sh

usage() {
  cat <<'END'
Usage: deploy/run.sh [--build-only] [-- ARGUMENTS...]

Installs the packages that are missing (Debian or Ubuntu), builds the release programs into build/release/bin, starts
the server with deploy/examples/limits.yaml and prints a call to try. Ctrl-C stops the server. Safe to repeat: what is
already installed or built is not done again.

  --build-only     stop after the build
  --help           this text
  -- ARGUMENTS...  handed to ebbgated, after --limits deploy/examples/limits.yaml
END
}

build_only=false
while (($# > 0)); do
  case $1 in
    --build-only) build_only=true ;;
    --help | -h) usage; exit 0 ;;
    --) shift; break ;;
    *) echo "deploy/run.sh: unknown argument '$1'; see --help (arguments for the server come after --)" >&2; exit 2 ;;
  esac
  shift
done

step "Install packages" "" deploy/install-dependencies.sh
step "Configure the release build" "If it worked before, remove build/release and try again." \
  cmake --preset release -DEBBGATE_TESTS=OFF -DEBBGATE_BENCHMARKS=OFF
step "Build (a few minutes the first time)" "$build_hint" \
  cmake --build build/release --parallel "$(build_jobs)"

bin=build/release/bin
echo
echo "Built: $bin/ebbgated (the server) and $bin/ebbgate (the command line)"
if $build_only; then exit 0; fi

# Waits beside the server until it answers, then says how to ask it.
announce() {
  local server=$1 deadline=$((SECONDS + 30))
  while ((SECONDS < deadline)) && kill -0 "$server" 2>/dev/null; do
    if "$bin/ebbgate" health --timeout 1s >/dev/null 2>&1; then
      cat <<END

Ebbgate is serving. Ctrl-C stops it. In another terminal, try:

  $bin/ebbgate check api-user alice

END
      return 0
    fi
    sleep 0.1
  done
}

echo "Starting: $bin/ebbgated --limits deploy/examples/limits.yaml${*:+ $*}"
(announce $$ &)
exec "$bin/ebbgated" --limits deploy/examples/limits.yaml "$@"
