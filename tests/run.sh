#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/steps.sh
source deploy/steps.sh

usage() {
  cat <<'END'
Usage: tests/run.sh [--preset NAME] [CTEST ARGUMENTS...]

Installs the packages that are missing (Debian or Ubuntu), builds and runs every test; ends with ctest's summary.

  --preset NAME    a preset of CMakePresets.json: dev (the default), release, asan-ubsan, tsan, coverage; also the
                   variable EBBGATE_PRESET
  --help           this text
  CTEST ARGUMENTS  handed to ctest: -L unit (a label), -R Envelope (by name), --rerun-failed, ...

Labels: unit, property, conformance, integration, style.
END
}

preset=${EBBGATE_PRESET:-dev}
case ${1:-} in
  --preset) preset=${2:?--preset needs a name}; shift 2 ;;
  --preset=*) preset=${1#--preset=}; shift ;;
  --help | -h) usage; exit 0 ;;
esac

step "Install packages" "" deploy/install-dependencies.sh --tests
step "Configure ($preset)" "If it worked before, remove build/$preset and try again." \
  cmake --preset "$preset" -DEBBGATE_TESTS=ON
step "Build ($preset)" "$build_hint" \
  cmake --build "build/$preset" --parallel "$(build_jobs)"

# Last, so that ctest's own summary ends the output.
printf '\n== Test (%s)\n' "$preset"
exec ctest --test-dir "build/$preset" --output-on-failure --parallel "$(nproc)" "$@"
