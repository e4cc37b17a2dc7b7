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
# DIR/findings has the findings; those there already are judged again. DIR/comment.md is the text
# for a comment. Status: 0 if all is good; 1 if a share is too low, or the fuzzer found something or
# could not judge; 2 for wrong input.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=${OSIER_FOLDER:-osier-results}
comment=$folder/comment.md
findings=$folder/findings

wrong() {
  echo "run.sh: $1" >&2
  exit 2
}

# number NAME VALUE DIGITS: prints the number of at most so many digits. Bash reads a number that
# begins with 0 as octal: 010 as 8, and 08 not at all.
number() {
  [[ $2 =~ ^[0-9]+$ ]] || wrong "$1 is no number: $2"
  [ ${#2} -le "$3" ] || wrong "$1 has more than $3 digits: $2"
  echo $((10#$2))
}

# A shard has room for a million seeds in each of a million runs. All sums fit into 63 bits.
seconds=$(number OSIER_FUZZ_SECONDS "${OSIER_FUZZ_SECONDS:-60}" 9)
shard=$(number OSIER_SHARD "${OSIER_SHARD:-0}" 6)
run=$(number GITHUB_RUN_NUMBER "${GITHUB_RUN_NUMBER:-0}" 12)
seed=$(number OSIER_SEED "${OSIER_SEED:-$((run * 1000000))}" 18)
seed=$((seed + shard * 1000000000000))

osier=${OSIER_COMMAND:-}
if [ -z "$osier" ]; then
  target=${CARGO_TARGET_DIR:-$here/target}
  [[ $target = /* ]] || target=$PWD/$target
  # In its own folder: the settings and the toolchain of the project are not for this build.
  (cd "$here" && env -u CARGO_BUILD_TARGET -u RUSTUP_TOOLCHAIN \
    cargo build --release --locked -p osier-cli --target-dir "$target") >&2
  osier=$target/release/osier
fi

# The programs with their arguments, for the fuzzer, and their files, for reports. A line that names
# an existing file has no arguments, so a path may contain blanks.
programs=()
files=()
add() {
  local file=$1 known
  [[ $1 != -* ]] || wrong "a program begins with a hyphen: write ./$1"
  programs+=("$1")
  [ -f "$file" ] || file=${file%%[[:space:]]*}
  for known in ${files[@]+"${files[@]}"}; do
    [ "$known" != "$file" ] || return 0
  done
  files+=("$file")
}
while IFS= read -r line; do
  line="${line#"${line%%[![:space:]]*}"}"
  line="${line%"${line##*[![:space:]]}"}"
  [ -n "$line" ] || continue
  if [ -d "$line" ]; then
    for file in "${line%/}"/*.wasm; do
      [ -e "$file" ] || wrong "no .wasm file in $line"
      add "$file"
    done
  else
    add "$line"
  fi
done <<<"${OSIER_MODULES:-}"
[ ${#programs[@]} -gt 0 ] || wrong "OSIER_MODULES names no program"

mkdir -p "$folder/reports" "$findings"
: >"$comment"
failed=0

# The service gets the comment so far, also if the script ends early.
publish() {
  cat "$comment"
  [ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$comment" >>"$GITHUB_STEP_SUMMARY"
  [ -z "${GITHUB_OUTPUT:-}" ] ||
    printf 'comment=%s\nfindings=%s\n' "$comment" "$findings" >>"$GITHUB_OUTPUT"
}
trap publish EXIT

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

# name FILE: prints the name of its report. Two paths have two names: a path that is no name for a
# file has a checksum in it.
name() {
  local plain
  plain=$(tr -c 'A-Za-z0-9._\n-' _ <<<"$1")
  if [ "$plain" = "$1" ]; then
    echo "$1"
  else
    echo "${plain:0:100}-$(printf %s "$1" | cksum | cut -d ' ' -f 1)"
  fi
}

# report FILE: writes the report, and its summary with the changes since the older one
report() {
  local file=$1 older said status=0
  older=$folder/reports/$(name "$file").json
  if [ -e "$older" ]; then
    # Another version of the command wrote the older report, or it does not compare this pipeline.
    said=$(summary "$file" --against "$older" 2>&1 >>"$comment") || status=$?
    [ -z "$said" ] || echo "$said" >&2
    if [ "$status" = 2 ]; then
      echo "run.sh: no comparison with $older" >&2
      status=0
      summary "$file" >>"$comment" || status=$?
      # An indented block, in which no text can form a link.
      {
        printf '\nNo comparison with the older report:\n\n'
        sed 's/^/    /' <<<"$said"
      } >>"$comment"
    fi
  else
    summary "$file" >>"$comment" || status=$?
  fi
  judged "$status"
  "$osier" report "$file" --pipeline "${OSIER_PIPELINE:-O1}" --format json --output "$older"
  echo >>"$comment"
}

for file in "${files[@]}"; do
  report "$file"
done

# fuzz OPTION...: appends a summary of the fuzzer to the comment; prints nothing
fuzz() {
  "$osier" fuzz "$@" --format markdown >>"$comment" || return $?
}

# --replay takes the records of the folder, not those of folders in it. It has told a file without a
# record (2), and has judged the others.
if [ -n "$(find "$findings" -maxdepth 1 -name '*.json' -print -quit)" ]; then
  status=0
  fuzz --replay "$findings" || status=$?
  [ "$status" != 2 ] || status=1
  judged "$status"
  echo >>"$comment"
fi
if [ "$seconds" != 0 ]; then
  status=0
  fuzz --corpus "${programs[@]}" --time "$seconds" --engine "${OSIER_ENGINE:-interp}" \
    --seed "$seed" --findings "$findings" || status=$?
  judged "$status"
  echo >>"$comment"
fi
exit "$failed"
