"""What the manifests use of Kubernetes' API (1.29) as a JSON schema: any other key is taken for a
slip. Some keys have fewer values than the API allows, where the others would be worse."""

NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
TEXT = {"type": "string", "minLength": 1}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
ABSOLUTE = {"type": "string", "pattern": "^/"}
QUANTITY = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"}
LABELS = {"type": "object", "additionalProperties": TEXT, "minProperties": 1}


def listed(item):
    return {"type": "array", "items": item, "minItems": 1}


def only(required="", **properties):
    """An object with these properties and no others."""
    return {"type": "object", "additionalProperties": False, "required": required.split(),
            "properties": properties}


METADATA = only("name", name=NAME, labels=LABELS, annotations=LABELS)
TIMES = {name: {"type": "integer", "minimum": 1} for name in
         ("periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold")}
PROBE = only("httpGet", initialDelaySeconds=COUNT, **TIMES,
             httpGet=only("path port", path=ABSOLUTE, port={"anyOf": [PORT, NAME]}))
CAPABILITIES = listed({"type": "string", "pattern": "^[A-Z_]+$"})
CONTAINER_SECURITY = only(
    "allowPrivilegeEscalation readOnlyRootFilesystem capabilities",
    runAsNonRoot=FLAG, runAsUser=COUNT, runAsGroup=COUNT,
    allowPrivilegeEscalation={"const": False}, readOnlyRootFilesystem={"const": True},
    capabilities=only("drop", drop=CAPABILITIES, add=CAPABILITIES),
    seccompProfile=only("type", type={"const": "RuntimeDefault"}))
RESOURCES = only(cpu=QUANTITY, memory=QUANTITY)
CONTAINER = only(
    "name image", name=NAME, image=TEXT, command=listed(TEXT), args=listed(TEXT),
    restartPolicy={"const": "Always"},
    ports=listed(only("name containerPort", containerPort=PORT,
                      name={"type": "string", "pattern": "^[a-z][-a-z0-9]{0,14}$"})),
    env=listed(only("name value", value={"type": "string"},
                    name={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})),
    startupProbe=PROBE, livenessProbe=PROBE, readinessProbe=PROBE,
    resources=only(requests=RESOURCES, limits=RESOURCES), securityContext=CONTAINER_SECURITY,
    volumeMounts=listed(only("name mountPath", name=NAME, mountPath=ABSOLUTE, readOnly=FLAG)))
VOLUME = {"oneOf": [
    only("name configMap", name=NAME, configMap=only("name", name=NAME)),
    only("name emptyDir", name=NAME, emptyDir=only(sizeLimit=QUANTITY)),
    only("name hostPath", name=NAME, hostPath=only(
        "path type", path=ABSOLUTE, type={"enum": ["Directory", "DirectoryOrCreate"]}))]}
POD = only(
    "containers volumes automountServiceAccountToken",
    restartPolicy={"enum": ["OnFailure", "Never"]}, nodeSelector=LABELS,
    automountServiceAccountToken={"const": False}, terminationGracePeriodSeconds=COUNT,
    securityContext=only(fsGroup=COUNT, supplementalGroups=listed(COUNT)),
    initContainers=listed(CONTAINER), containers=listed(CONTAINER), volumes=listed(VOLUME))
TEMPLATE = only("spec", metadata=only(labels=LABELS, annotations=LABELS), spec=POD)


def kind(version, name, **rest):
    return only(" ".join(["apiVersion kind metadata", *rest]), apiVersion={"const": version},
                kind={"const": name}, metadata=METADATA, **rest)


KINDS = {
    "ConfigMap": kind("v1", "ConfigMap", data={
        "type": "object", "minProperties": 1, "additionalProperties": {"type": "string"},
        "propertyNames": {"pattern": "^[-._a-zA-Z0-9]+$"}}),
    "DaemonSet": kind("apps/v1", "DaemonSet", spec=only(
        "selector template", selector=only("matchLabels", matchLabels=LABELS), template=TEMPLATE)),
    "Job": kind("batch/v1", "Job", spec=only("template", backoffLimit=COUNT, template=TEMPLATE)),
}
