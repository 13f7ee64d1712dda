"""A bill of materials of g3nn as CycloneDX 1.6 JSON, from the metadata of what is installed here.

    python tools/sbom.py > g3nn.cdx.json

It lists what `pip install g3nn` and its extras for users bring along, with versions, licences and who needs whom.
"""

from __future__ import annotations

import json
import runpy
import tomllib
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from licences import closure, direct, licence
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

ROOT = Path(__file__).parents[1]
FOR_DEVELOPERS = {"dev", "release"}
SPELLED = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""What is not an SPDX expression, though it means one."""


def purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def stated(package: Distribution) -> list[dict[str, Any]]:
    words = SPELLED.get(licence(package), licence(package))
    try:
        return [{"expression": canonicalize_license_expression(words)}]
    except InvalidLicenseExpression:
        return [{"license": {"name": words}}]


def bill() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    wanted = [*project["dependencies"], *(one for name, extra in extras if name not in FOR_DEVELOPERS for one in extra)]
    packages, _ = closure(wanted)
    version = runpy.run_path(str(ROOT / "src" / "g3nn" / "base" / "version.py"))["__version__"]
    root = purl(project["name"], version)
    names = {name: purl(name, package.version.partition("+")[0]) for name, package in packages.items()}
    needs = {root: direct(wanted)} | {names[name]: direct(one.requires or ()) for name, one in packages.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": project["name"],
                "version": version,
                "purl": root,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": names[name],
                "name": name,
                "version": package.version,
                "purl": names[name],
                "licenses": stated(package),
            }
            for name, package in packages.items()
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(names[name] for name in others & names.keys())}
            for ref, others in needs.items()
        ],
    }


if __name__ == "__main__":
    print(json.dumps(bill(), indent=1))
