"""What the manifests use of Kubernetes' API (1.29), of kustomize and of Prometheus' operator as a JSON
schema: any other key is taken for a
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
SELECTOR = only("matchLabels", matchLabels=LABELS)
RUNTIME_DEFAULT = only("type", type={"const": "RuntimeDefault"})
TOLERATION = only("key operator effect", key=TEXT, operator={"const": "Exists"},
                  effect={"const": "NoSchedule"})
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
    seccompProfile=RUNTIME_DEFAULT)
RESOURCES = only("memory", cpu=QUANTITY, memory=QUANTITY, **{"nvidia.com/gpu": QUANTITY})
CONTAINER = only(
    "name image resources securityContext", name=NAME, image=TEXT, command=listed(TEXT), args=listed(TEXT),
    restartPolicy={"const": "Always"},
    ports=listed(only("name containerPort", containerPort=PORT,
                      name={"type": "string", "pattern": "^[a-z][-a-z0-9]{0,14}$"})),
    env=listed(only("name value", value={"type": "string"},
                    name={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})),
    startupProbe=PROBE, livenessProbe=PROBE, readinessProbe=PROBE,
    resources=only("requests limits", requests=RESOURCES, limits=RESOURCES), securityContext=CONTAINER_SECURITY,
    volumeMounts=listed(only("name mountPath", name=NAME, mountPath=ABSOLUTE, readOnly=FLAG)))
HOST_PATH = only("path type", path=ABSOLUTE, type={"enum": ["Directory", "DirectoryOrCreate"]})
VOLUME = {"oneOf": [
    only("name configMap", name=NAME, configMap=only("name", name=NAME)),
    only("name emptyDir", name=NAME, emptyDir=only(sizeLimit=QUANTITY)),
    only("name persistentVolumeClaim", name=NAME, persistentVolumeClaim=only(
        "claimName", claimName=NAME, readOnly=FLAG)),
    only("name hostPath", name=NAME, hostPath=HOST_PATH)]}
POD = only(
    "containers volumes automountServiceAccountToken",
    restartPolicy={"enum": ["OnFailure", "Never"]}, nodeSelector=LABELS, priorityClassName=NAME,
    tolerations=listed(TOLERATION),
    automountServiceAccountToken={"const": False}, terminationGracePeriodSeconds=COUNT,
    securityContext=only(
        "runAsNonRoot seccompProfile", runAsNonRoot=FLAG, runAsUser=COUNT, runAsGroup=COUNT,
        fsGroup=COUNT, fsGroupChangePolicy={"const": "OnRootMismatch"},
        supplementalGroups=listed(COUNT), seccompProfile=RUNTIME_DEFAULT),
    initContainers=listed(CONTAINER), containers=listed(CONTAINER), volumes=listed(VOLUME))
TEMPLATE = only("spec", metadata=only(labels=LABELS, annotations=LABELS), spec=POD)


STORAGE = only("storage", storage=QUANTITY)
ACCESS = listed({"enum": ["ReadOnlyMany", "ReadWriteMany"]})
NAME_OF_KIND = {"type": "string", "pattern": "^[A-Z][A-Za-z]+$"}


def kind(version, name, **rest):
    return only(" ".join(["apiVersion kind metadata", *rest]), apiVersion={"const": version},
                kind={"const": name}, metadata=METADATA, **rest)


KINDS = {
    "ConfigMap": kind("v1", "ConfigMap", data={
        "type": "object", "minProperties": 1, "additionalProperties": {"type": "string"},
        "propertyNames": {"pattern": "^[-._a-zA-Z0-9]+$"}}),
    "DaemonSet": kind("apps/v1", "DaemonSet", spec=only(
        "selector updateStrategy template", selector=SELECTOR, template=TEMPLATE,
        updateStrategy=only("type rollingUpdate", type={"const": "RollingUpdate"},
                            rollingUpdate=only("maxUnavailable", maxUnavailable={
                                "anyOf": [COUNT, {"type": "string", "pattern": "^[0-9]+%$"}]})))),
    "NetworkPolicy": kind("networking.k8s.io/v1", "NetworkPolicy", spec=only(
        "podSelector policyTypes", podSelector=SELECTOR, ingress=listed(only("from", ports=listed(
            only("port", port=PORT)), **{"from": listed(only(
                namespaceSelector=SELECTOR, podSelector=SELECTOR))})),
        policyTypes=listed({"enum": ["Ingress", "Egress"]}))),
    "PersistentVolume": kind("v1", "PersistentVolume", spec=only(
        "capacity accessModes storageClassName claimRef hostPath", capacity=STORAGE,
        accessModes=ACCESS, persistentVolumeReclaimPolicy={"const": "Retain"},
        storageClassName={"type": "string"}, claimRef=only("namespace name", namespace=NAME, name=NAME),
        hostPath=HOST_PATH)),
    "PersistentVolumeClaim": kind("v1", "PersistentVolumeClaim", spec=only(
        "accessModes resources", accessModes=ACCESS, storageClassName={"type": "string"},
        volumeName=NAME, resources=only("requests", requests=STORAGE))),
    "PriorityClass": only(
        "apiVersion kind metadata value description", apiVersion={"const": "scheduling.k8s.io/v1"},
        kind={"const": "PriorityClass"}, metadata=METADATA, value=COUNT, description=TEXT),
    "PodMonitor": kind("monitoring.coreos.com/v1", "PodMonitor", spec=only(
        "selector podMetricsEndpoints", selector=SELECTOR, podMetricsEndpoints=listed(only(
            "port path", port=NAME, path=ABSOLUTE,
            interval={"type": "string", "pattern": "^[0-9]+s$"})))),
    "Kustomization": only(
        "apiVersion kind resources", apiVersion={"const": "kustomize.config.k8s.io/v1beta1"},
        kind={"const": "Kustomization"}, resources=listed(TEXT),
        images=listed(only("name newName newTag", name=TEXT, newName=TEXT, newTag=TEXT))),
    "Component": only(
        "apiVersion kind resources", apiVersion={"const": "kustomize.config.k8s.io/v1alpha1"},
        kind={"const": "Component"}, resources=listed(TEXT), patches=listed(only(
            "target patch", patch=TEXT, target=only("kind name", kind=NAME_OF_KIND, name=NAME)))),
    "Job": kind("batch/v1", "Job", spec=only("template", backoffLimit=COUNT, template=TEMPLATE)),
}
