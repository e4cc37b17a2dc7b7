#!/usr/bin/env bash
# Builds the fuzz targets in a service's machine: binaries, seed corpora and dictionaries go to $OUT.
# The service sets SRC and OUT, and has cargo-fuzz and the compiler that its sanitizer needs.
set -euo pipefail
cd "$SRC/osier"
cargo fuzz build -O --debug-assertions --fuzz-dir fuzz-targets
fuzz-targets/corpora fuzz-targets/corpus
host=$(rustc -vV | sed -n 's/^host: //p')
for source in fuzz-targets/fuzz_targets/*.rs; do
  target=$(basename "$source" .rs)
  cp "fuzz-targets/target/$host/release/$target" "$OUT"
  (cd "fuzz-targets/corpus/$target" && zip -q -r "$OUT/${target}_seed_corpus.zip" .)
  dictionary=fuzz-targets/dictionaries/$target.dict
  [ ! -e "$dictionary" ] || cp "$dictionary" "$OUT"
done
