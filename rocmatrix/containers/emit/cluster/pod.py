"""The settings of a run as fields of a pod: the pod's own, and its one container's.

Source of the fields: Kubernetes' API reference (core/v1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from rocmatrix.containers import settings
from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.parts import refuse_portable
from rocmatrix.containers.least_privilege import DATA_FOLDER, RUN_FOLDER
from rocmatrix.containers.runspec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A spec's settings as fields of a pod: the pod's own, and its one container's."""

    spec: dict[str, Any]
    container: dict[str, Any]


def pod_of(spec: RunSpec, site: Site) -> Pod:
    """Return the pod of a spec. Raises ValueError for a portable spec and for a setting that no pod can have."""
    refuse_portable(spec)
    fields: dict[str, Any] = {
        "pod": {**site.pod, "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        "container": {"securityContext": {"privileged": False}},
    }
    for setting in spec.settings:
        fields = _joined(fields, fields_of(setting, site))
    return Pod(spec=fields["pod"], container=fields["container"])


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return two trees as one: lists grow, anything else that both have is the other's."""
    joined = dict(one)
    for key, value in other.items():
        if isinstance(value, dict):
            joined[key] = _joined(one.get(key, {}), value)
        else:
            known = one.get(key, [])  # two mounts of one claim need its volume once
            joined[key] = [*known, *(item for item in value if item not in known)] if isinstance(value, list) else value
    return joined


def fields_of(setting: settings.Setting, site: Site) -> dict[str, Any]:  # noqa: PLR0911, PLR0912 -- one line a kind
    """Return one setting as fields of `pod` and `container`. Raises ValueError for one that no pod can have."""
    match setting:
        case settings.User():
            return {"pod": {"securityContext": _identity(setting)}}
        case settings.Group():
            return {"pod": {"securityContext": {"supplementalGroups": [int(setting.gid)]}}}
        case settings.Environment():
            return {"container": {"env": [{"name": setting.name, "value": literal(setting.content)}]}}
        case settings.Mount():
            return _mount(setting, site)
        case settings.Tmpfs():
            return _in_memory(setting.target, setting.bytes)
        case settings.SharedMemory():
            return _in_memory("/dev/shm", setting.bytes)
        case settings.Limit() | settings.CdiDevice() | settings.Device() | settings.Port():
            raise ValueError(f"a pod cannot be given {setting.flag}={setting.value}")
        case settings.Ipc():
            return {"pod": {"hostIPC": True}}
        case settings.Network():
            return {}  # every pod is on the cluster's network, and its loopback is its own
        case settings.DropCapability():
            return {"container": {"securityContext": {"capabilities": {"drop": [setting.value]}}}}
        case settings.AddCapability():
            return {"container": {"securityContext": {"capabilities": {"add": [setting.value]}}}}
        case settings.SecurityOption():
            return _security(setting)
        case settings.ReadOnlyRoot():
            return {"container": {"securityContext": {"readOnlyRootFilesystem": True}}}
        case settings.Init():
            return {}  # said in the file's head
        case _:
            assert_never(setting)


def _identity(user: settings.User) -> dict[str, Any]:
    uid, gid = map(int, user.value.split(":"))
    # fsGroup: a new claim belongs to root, and is handed to the run's group once
    return {
        "runAsUser": uid,
        "runAsGroup": gid,
        "runAsNonRoot": uid != 0,
        "fsGroup": gid,
        "fsGroupChangePolicy": "OnRootMismatch",
    }


def _mount(mount: settings.Mount, site: Site) -> dict[str, Any]:
    if mount.kind == "volume":
        return _volume(mount.target, {"emptyDir": {}})
    if mount.target == RUN_FOLDER:
        return _volume(mount.target, {"persistentVolumeClaim": {"claimName": site.claim}})
    if not mount.target.startswith(f"{DATA_FOLDER}/") or mount.origin.startswith("/"):
        raise ValueError(f"a pod cannot mount {mount.origin}: a node need not have it")
    if ":" in mount.target:
        raise ValueError(f"a pod cannot mount {mount.origin}: Kubernetes takes no colon in the path of a mount")
    about = {"name": "data", "persistentVolumeClaim": {"claimName": site.data_claim or site.claim}}
    found = {"name": "data", "mountPath": mount.target, "subPath": mount.origin, "readOnly": True}
    return {"pod": {"volumes": [about]}, "container": {"volumeMounts": [found]}}


def _in_memory(target: str, size: int) -> dict[str, Any]:
    return _volume(target, {"emptyDir": {"medium": "Memory", "sizeLimit": str(size)}})


def _volume(target: str, about: dict[str, Any]) -> dict[str, Any]:
    name = target.strip("/").replace("/", "-")
    return {
        "pod": {"volumes": [{"name": name, **about}]},
        "container": {"volumeMounts": [{"name": name, "mountPath": target}]},
    }


def _security(option: settings.SecurityOption) -> dict[str, Any]:
    if option.value in ("no-new-privileges", "no-new-privileges:true"):
        return {"container": {"securityContext": {"allowPrivilegeEscalation": False}}}
    if option.value == "seccomp=unconfined":
        return {"pod": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}
    raise ValueError(f"a pod cannot be given {option.flag}={option.value}")


def literal(text: str) -> str:
    """Return `text` so that the kubelet, which expands `$(NAME)` and takes `$$` for `$`, leaves it as it is."""
    return text.replace("$", "$$")
