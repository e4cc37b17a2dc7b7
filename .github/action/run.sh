#!/usr/bin/env bash
# usage: OSIER_MODULES='app.wasm' .github/action/run.sh
# Reports on WebAssembly programs, compares with older reports, and fuzzes the programs: what the
# action of this repository does. It runs on any machine with cargo, from the folder of a project.
#   OSIER_MODULES=LINES      programs with their arguments, or folders of programs, one a line
#   OSIER_PIPELINE=P         the pipeline of the reports (O1)
#   OSIER_MIN=SHARES         lowest shares, as for osier report --min (none)
#   OSIER_FUZZ_SECONDS=N     seconds of the fuzzer; 0 for none (60)
#   OSIER_ENGINE=E           the engine of the fuzzer: interp or jit (interp)
#   OSIER_SHARD=K            the number of this shard; each has seeds of its own (0)
#   OSIER_SEED=S             the seed of shard 0 (from the number of the service's run, or 0)
#   OSIER_FOLDER=DIR         where results go (osier-results)
#   OSIER_COMMAND=PATH       the command (built from this repository)
# DIR/reports/NAME.json is the report on a program. A report that is there already is the older one.
# DIR/findings has the findings; those there already are judged
# again. DIR/comment.md is the text for a comment. Status: 0 if all is good; 1 if a share is too low
# or the fuzzer found something; 2 for wrong input.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=${OSIER_FOLDER:-osier-results}
seconds=${OSIER_FUZZ_SECONDS:-60}
shard=${OSIER_SHARD:-0}
seed=${OSIER_SEED:-$((${GITHUB_RUN_NUMBER:-0} * 1000000))}
comment=$folder/comment.md
findings=$folder/findings

wrong() {
  echo "run.sh: $1" >&2
  exit 2
}

[[ $seconds =~ ^[0-9]+$ ]] || wrong "OSIER_FUZZ_SECONDS is no number: $seconds"
[[ $shard =~ ^[0-9]+$ ]] || wrong "OSIER_SHARD is no number: $shard"
[[ $seed =~ ^[0-9]+$ ]] || wrong "OSIER_SEED is no number: $seed"

osier=${OSIER_COMMAND:-}
if [ -z "$osier" ]; then
  target=${CARGO_TARGET_DIR:-$here/target}
  cargo build --release --locked --manifest-path "$here/Cargo.toml" -p osier-cli --target-dir "$target" >&2
  osier=$target/release/osier
fi

# Lines of programs. The report takes the file alone, the fuzzer its arguments too.
programs=()
while IFS= read -r line; do
  line="${line#"${line%%[![:space:]]*}"}"
  line="${line%"${line##*[![:space:]]}"}"
  [ -n "$line" ] || continue
  if [ -d "$line" ]; then
    for file in "$line"/*.wasm; do
      [ -e "$file" ] || wrong "no .wasm file in $line"
      programs+=("$file")
    done
  else
    programs+=("$line")
  fi
done <<<"${OSIER_MODULES:-}"
[ ${#programs[@]} -gt 0 ] || wrong "OSIER_MODULES names no program"

mkdir -p "$folder/reports" "$findings"
: >"$comment"
failed=0

# judged STATUS: notes a check that failed; other failures end the script.
judged() {
  case $1 in
    0) ;;
    1) failed=1 ;;
    *) exit "$1" ;;
  esac
}

min=()
[ -z "${OSIER_MIN:-}" ] || min=(--min "$OSIER_MIN")

# summary FILE OPTION...: prints the summary of the report
summary() {
  "$osier" report "$@" --pipeline "${OSIER_PIPELINE:-O1}" ${min[@]+"${min[@]}"} --format markdown
}

# report FILE: writes the report, and its summary with the changes since the older one
report() {
  local file=$1 name older against=() status=0
  name=$(tr -c 'A-Za-z0-9._\n-' _ <<<"$file")
  older=$folder/reports/$name.json
  [ ! -e "$older" ] || against=(--against "$older")
  summary "$file" ${against[@]+"${against[@]}"} >>"$comment" || status=$?
  if [ "$status" = 2 ] && [ ${#against[@]} -gt 0 ]; then
    # Another version of the command wrote the older report.
    echo "run.sh: no comparison with $older" >&2
    status=0
    summary "$file" >>"$comment" || status=$?
  fi
  judged "$status"
  "$osier" report "$file" --pipeline "${OSIER_PIPELINE:-O1}" --format json --output "$older"
  echo >>"$comment"
}

for program in "${programs[@]}"; do
  report "${program%% *}"
done

# fuzz OPTION...: appends a summary of the fuzzer to the comment
fuzz() {
  local status=0
  "$osier" fuzz "$@" --format markdown >>"$comment" || status=$?
  judged "$status"
  echo >>"$comment"
}

if [ -n "$(find "$findings" -name '*.json' -print -quit)" ]; then
  fuzz --replay "$findings"
fi
if [ "$seconds" != 0 ]; then
  # A shard has room for a million seeds in each run.
  fuzz --corpus "${programs[@]}" --time "$seconds" --engine "${OSIER_ENGINE:-interp}" \
    --seed $((seed + shard * 1000000000000)) --findings "$findings"
fi

cat "$comment"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$comment" >>"$GITHUB_STEP_SUMMARY"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'comment=%s\nfindings=%s\n' "$comment" "$findings" >>"$GITHUB_OUTPUT"
fi
exit "$failed"
