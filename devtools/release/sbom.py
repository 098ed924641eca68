"""sbom.py NAME VERSION RUST < crates: prints what is built into the library, as a CycloneDX document.

The input has the linked crates as `name version: license`. Cargo.lock in the working folder has their checksums and
dependencies. The same commit gives the same document: its time is SOURCE_DATE_EPOCH.
"""

import json
import os
import sys
import tomllib
from datetime import datetime, timezone

name, version, rust = sys.argv[1:]

with open("Cargo.lock", "rb") as file:
    locked = {(package["name"], package["version"]): package for package in tomllib.load(file)["package"]}
linked = {}
for line in sys.stdin:
    crate, license_of_it = line.strip().split(": ", 1)
    crate, number = crate.rsplit(" ", 1)
    linked[crate, number] = license_of_it.replace("/", " OR ")


def purl(crate, number):
    return f"pkg:cargo/{crate}@{number}"


def component(key):
    checksum = locked[key].get("checksum")
    return {
        "type": "library",
        "bom-ref": purl(*key),
        "name": key[0],
        "version": key[1],
        "purl": purl(*key),
        "licenses": [{"expression": linked[key]}],
        "hashes": [{"alg": "SHA-256", "content": checksum}],
    }


def needed(package):
    """The linked crates that a package in Cargo.lock depends on. It names a version only if there are several."""
    for dependency in package.get("dependencies", []):
        parts = dependency.split()
        for key in linked:
            if key[0] == parts[0] and (len(parts) == 1 or key[1] == parts[1]):
                yield purl(*key)


own = f"pkg:generic/{name}@{version}"
standard = purl("std", rust)
ours = [package for (crate, _), package in locked.items() if crate in (name, f"{name}_core")]
document = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {
        "timestamp": datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "component": {
            "type": "library",
            "bom-ref": own,
            "name": name,
            "version": version,
            "purl": own,
            "licenses": [{"license": {"id": "PostgreSQL"}}],
        },
    },
    "components": [component(key) for key in sorted(linked)]
    + [
        {
            "type": "library",
            "bom-ref": standard,
            "name": "std",
            "version": rust,
            "description": "Rust's standard library",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }
    ],
    "dependencies": [{"ref": own, "dependsOn": sorted({standard, *(ref for package in ours for ref in needed(package))})}]
    + [{"ref": purl(*key), "dependsOn": sorted(set(needed(locked[key])))} for key in sorted(linked)],
}
json.dump(document, sys.stdout, indent=1)
print()
