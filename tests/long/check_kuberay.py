#!/usr/bin/env python3
"""Validates examples/cluster/kuberay.yaml against KubeRay's schema.

    check_kuberay.py CRD.yaml

CRD.yaml is KubeRay's helm-chart/kuberay-operator/crds/ray.io_rayclusters.yaml. Keys that the schema
does not name are errors, too. Needs Python's jsonschema and yaml; exits with 77 without them.
"""
import os
import sys

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MANIFEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "cluster", "kuberay.yaml")


def close(schema):
    """Forbids members of objects that the schema does not name."""
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" not in schema and \
                not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema["additionalProperties"] = False
        if schema.pop("x-kubernetes-int-or-string", False):  # integers have no pattern
            schema.pop("anyOf", None)
            schema.pop("pattern", None)
        for value in schema.values():
            close(value)
    elif isinstance(schema, list):
        for value in schema:
            close(value)
    return schema


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        versions = yaml.safe_load(file)["spec"]["versions"]
    with open(MANIFEST, encoding="utf-8") as file:
        cluster = next(document for document in yaml.safe_load_all(file) if document["kind"] == "RayCluster")
    schema = next(v for v in versions if cluster["apiVersion"] == f"ray.io/{v['name']}")["schema"]["openAPIV3Schema"]
    # Metadata is checked by Kubernetes itself.
    schema["properties"]["metadata"] = {"type": "object"}
    errors = list(jsonschema.Draft4Validator(close(schema)).iter_errors(cluster))
    for error in errors:
        print(f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    print(f"kuberay.yaml: {len(errors)} errors")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
