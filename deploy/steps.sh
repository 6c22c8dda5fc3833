# shellcheck shell=bash
# Sourced by the scripts here, in tests/ and in .ci/: runs their steps, says how long each took and which one failed.

# step NAME HINT COMMAND...: runs COMMAND with its output shown; on failure says what failed and HINT, and ends the
# script.
step() {
  local name=$1 hint=$2 started=$SECONDS status=0
  shift 2
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  if ((status != 0)); then
    printf '\n== FAILED: %s (exit code %d, after %d s)\n' "$name" "$status" $((SECONDS - started)) >&2
    printf '   command: %s\n' "$*" >&2
    [[ -z $hint ]] || printf '   %s\n' "$hint" >&2
    exit "$status"
  fi
  printf '== %s: done in %d s\n' "$name" $((SECONDS - started))
}

# shellcheck disable=SC2034  # used where this is sourced
build_hint="If the compiler was killed, there was too little memory: close something and try again."

# One job for each core, and no more than one for each 1.5 GiB of memory: sources that include gRPC take about 1 GiB.
build_jobs() {
  local cores memory_kib
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  local by_memory=$((memory_kib / 1572864))
  ((by_memory >= 1)) || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}
