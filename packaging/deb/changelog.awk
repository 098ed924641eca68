# Turns CHANGELOG.md into Debian's form: one entry for each version, lines of 78 characters at most.
# Variables: current (the version in Cargo.toml), full (the package's version), revision, date, maintainer.
function flush_item(  words, count, i, line, indent) {
  if (item == "") return
  count = split(item, words, " ")
  line = "    -"; indent = "      "
  for (i = 1; i <= count; i++) {
    if (length(line " " words[i]) > 78 && line != "    -") { print line; line = indent words[i] }
    else line = line " " words[i]
  }
  print line
  item = ""
}
function finish() {
  flush_item()
  if (open) printf "\n -- %s  %s\n\n", maintainer, when
  open = 0
}
function debian_date(day,  command, result) {
  command = "LC_ALL=C date --utc -R --date='" day "'"
  command | getline result
  close(command)
  return result
}
/^## / {
  finish()
  version = $2
  released = match($3, /[0-9]+-[0-9]+-[0-9]+/)
  when = released ? debian_date(substr($3, RSTART, RLENGTH)) : date
  if (version == current) when = date
  printf "snowflake-ids (%s-%s) unstable; urgency=medium\n\n", version == current ? full : version, version == current ? revision : 1
  open = 1
  next
}
!open { next }
/^### / { flush_item(); printf "  * %s:\n", substr($0, 5); next }
/^- / { flush_item(); item = substr($0, 3); next }
/^$/ { flush_item(); next }
{ sub(/^ +/, ""); item = item " " $0 }
END { finish() }
