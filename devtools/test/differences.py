#!/usr/bin/env python3
"""Compares the results of suites with those of a control, and the differences with a list that has a reason for each.

differences.py files WAY CONTROL RESULTS: for each file of the folders that differs, prints the way, the file, the number of different
lines and their digest. The lines are kept beside the folder RESULTS. A number of 15 digits or more is an id, which equals any number.
differences.py lines WAY CONTROL RESULTS: prints the way and each line that only one of the two files has.
differences.py check LIST WAY...: compares the lines of standard input with those of LIST that are of one of the ways. A line of LIST
that begins with "==" is the reason for those below it, and "*" instead of a number and a digest takes any. With
SNOWFLAKE_IDS_WRITE=1 it writes LIST.
"""
import hashlib, os, re, subprocess, sys, tempfile
from pathlib import Path

UNEXPLAINED = "== to be explained"


def normal_lines(file):
    text = file.read_text(errors="replace") if file.exists() else "no results"
    return [re.sub(r"\s*\|\s*", "|", re.sub("-{2,}", "--", re.sub(r"\s+", " ", line))).strip() for line in text.splitlines()]


def equal(old, new):
    return all(len(b) >= 15 or a == b for a, b in zip(re.findall(r"\d+", old), re.findall(r"\d+", new)))


def different_lines(old_lines, new_lines):
    """Lines belong together if they differ in numbers only."""
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in ("old", old_lines), ("new", new_lines):
            Path(folder, name).write_text("".join(re.sub(r"\d+", "#", line) + "\n" for line in lines))
        formats = "--old-line-format=-", "--new-line-format=+", "--unchanged-line-format=="
        signs = subprocess.run(["diff", *formats, "old", "new"], cwd=folder, capture_output=True, text=True).stdout
    old_lines, new_lines = iter(old_lines), iter(new_lines)
    for sign in signs:
        old = next(old_lines) if sign != "+" else None
        new = next(new_lines) if sign != "-" else None
        if sign != "=" or not equal(old, new):
            if old is not None:
                yield "-" + old
            if new is not None:
                yield "+" + new


def files(way, control, results):
    names = {str(file.relative_to(folder)) for folder in (control, results) for file in folder.glob("*/*.out")}
    kept = []
    for name in sorted(names):
        lines = list(different_lines(normal_lines(control / name), normal_lines(results / name)))
        if lines:
            text = re.sub(r"\d{5,}", "N", "\n".join(lines))  # such as oids
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            print(way, name.removesuffix(".out"), len(lines), digest)
            kept += [f"=== {name}", *lines]
    results.with_suffix(".differences").write_text("\n".join(kept) + "\n")
    print(f"{way}: {len(names)} files compared", file=sys.stderr)


def lines(way, control, results):
    old, new = (set(file.read_text().splitlines()) for file in (control, results))
    for line in sorted(old ^ new):
        print(way, "-+"[line in new] + line)
    print(f"{way}: {len(new)} lines compared", file=sys.stderr)


def check(file, ways):
    reasons, reason = {}, UNEXPLAINED
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith("=="):
            reason = line
        elif line.strip():
            reasons[line] = reason
    # A file that differs in another way than before keeps its reason. "*" takes any difference of a file.
    before = {tuple(line.split()[:2]): reason for line, reason in reasons.items()}
    found = [line.rstrip("\n") for line in sys.stdin]
    for_any = {line: " ".join([*line.split()[:2], "*"]) for line in found}
    found = [for_any[line] if for_any[line] in reasons else line for line in found]
    gone = [line for line in reasons if line.split()[0] in ways and line not in found]
    if os.environ.get("SNOWFLAKE_IDS_WRITE"):
        reasons = {line: reason for line, reason in reasons.items() if line not in gone}
        reasons |= {line: before.get(tuple(line.split()[:2]), UNEXPLAINED) for line in found}
        groups = sorted(set(reasons.values()))
        file.write_text("\n".join("\n".join([group, *sorted(l for l in reasons if reasons[l] == group), ""]) for group in groups))
        gone = []
    new = [line for line in found if reasons.get(line, UNEXPLAINED) == UNEXPLAINED]
    for text, lines in ("not listed, or without a reason:", new), ("listed, but not there any more:", gone):
        if lines:
            print(text, *lines, sep="\n  ")
    if new or gone:
        sys.exit(1)
    print(f"{len(found)} differences, all listed in {file}")


if sys.argv[1] == "check":
    check(Path(sys.argv[2]), sys.argv[3:])
else:
    {"files": files, "lines": lines}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
