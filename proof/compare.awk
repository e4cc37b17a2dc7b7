# usage: awk -f compare.awk OURS THEIRS MAPPING
# Compares the verdicts of `osier check` and of the extracted checker line by line, prints counts,
# and fails with the differences. MAPPING tells what the entries of each function have.

# The verdict at the end of a line, and the key before it.
function split_verdict(line, i) {
  if (match(line, / (accept|refuse [^ ]+|outside .*)$/)) {
    verdict = substr(line, RSTART + 1)
    place = substr(line, 1, RSTART - 1)
  } else {
    verdict = ""; place = line
  }
}

FILENAME == ARGV[1] { ours[++many] = $0; next }
FILENAME == ARGV[2] {
  if (++line > many) { if ($0 ~ / forward | backward | into | out /) extra[++extras] = $0; next }
  split_verdict(ours[line]); mine = verdict; here = place
  split_verdict($0)
  if (place != here) {
    differ("the lines are about other entries: " ours[line] " / " $0)
    next
  }
  name = $1
  if (mine == "accept") accepted[name]++
  else sum["osier check: " mine]++
  if (verdict ~ /^outside/) {
    sum["outside, " (mine == "accept" ? "accepted" : "refused") " by osier check:" substr(verdict, 8)]++
    outside++
  } else if (mine == "accept" && verdict == "accept") {
    sum["accepted"]++
  } else if (mine != "accept" && verdict != "accept") {
    sum["refused by both"]++
    sum["extracted: " verdict]++
  } else if (mine == "refuse lone-write" && verdict == "accept") {
    # The rule of `osier check` looks for a trap at the next anchor alone, the theorem at every store
    # on the way (Owed.v). Both ask that the trap shows the same memory.
    sum["accepted by the extracted checker alone: lone-write"]++
  } else {
    differ(here ": osier check: " mine ", extracted: " verdict)
  }
  next
}
# What accepted entries are about, by function.
/^function / { name = $2; next }
/^(step|replay)/ && accepted[name] {
  if ($1 == "step" && $8 != "-") far[name] = 1
  if ($1 == "replay") replays[name] = 1
  if ($1 == "step" && $2 ~ /^[us](div|rem)$|load/) traps[name] = 1
}
/^term .* merged:/ { merged[name] = 1 }

function differ(what) { print "difference: " what; differences++ }
function named(what, of, n, name) {
  for (name in of) if (accepted[name]) n++
  print "functions with " what, n + 0
}

END {
  if (line < many) differ("the extracted checker prints " line " of " many " lines")
  if (extras) differ("the extracted checker prints more lines: " extra[1])
  print "entries", many + 0
  print "outside", outside + 0
  for (k in sum) print k, sum[k]
  named("far terms", far); named("replays", replays); named("merged reads", merged)
  named("steps that may trap", traps)
  exit differences > 0
}
