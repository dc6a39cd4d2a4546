"""kubectl 1.37 prints the same on a real kube-apiserver v1.37 as on ours, command by command."""

from collections.abc import Iterator

import pytest
from benchmarks import cluster_plane
from side_by_side import Side, difference
from up_process import Up

import prerequisites

pytestmark = [pytest.mark.e2e, pytest.mark.real]

READ, WRITTEN = "ns-readonly", "ns-written"
FIXTURES = ("hpas", "workloads", "pods", "events")
FORMS = ("", "-o wide", "-o yaml", "-o name")
KINDS = ("hpa", "deploy", "rs", "sts", "rc", "pods", "svc", "cm", "secret", "events", "sa", "controllerrevisions")

READING = {
    **{
        f"get {kind} {form}": (f"get {kind} {form}",)
        for kind in KINDS
        for form in ("", "-o wide", "-o yaml", "-o name")
    },
    **{f"describe {kind}": (f"describe {kind}",) for kind in KINDS},
    "get with a label column": ("get pods -L app", "get hpa -L team --no-headers", "get deploy --show-labels"),
    "get sorted": ("get pods --sort-by=.metadata.name", "get hpa --sort-by=.spec.maxReplicas"),
    "get by selectors": (
        "get pods -l app=web",
        "get pods -l app!=web",
        "get pods --field-selector=status.phase!=Running",
    ),
    "get of a wrong field selector": (
        "get pods --field-selector=spec.nope=1",
        "get hpa --field-selector=spec.maxReplicas=1",
    ),
    "get of a wrong label selector": ("get pods -l a=b=c", "get pods -l -a"),
    "get absent": ("get deploy nope", "get pods nope", "get hpa nope", "get ns nope", "describe deploy nope"),
    "get in every namespace": ("get hpa -A --field-selector=metadata.namespace=ns-readonly",),
    "get subresources": (
        "get deploy web --subresource=scale",
        "get deploy web --subresource=status",
        "get sts db --subresource=scale -o yaml",
        "get rc old --subresource=scale -o yaml",
        "get hpa a-util --subresource=status -o yaml",
        "get hpa a-util --subresource=scale",
        "get cm settings --subresource=status",
    ),
    "logs without a node": ("logs nope", "rollout history deploy/web", "rollout history sts/db"),
    "rollout status": ("rollout status deploy/web --timeout=1s", "rollout status rc/old", "rollout status hpa/a-util"),
    "can i": (
        "auth can-i create hpa",
        "auth can-i * *",
        "auth can-i get pods --subresource=log",
        "auth can-i list nodes",
    ),
    "raw": (
        "get --raw /apis/autoscaling/v2/namespaces/ns-readonly/nopes",
        "get --raw /api/v1/namespaces/ns-readonly/pods/nope/log",
        "get --raw /apis/autoscaling/v3",
        "get --raw /apis/nope.io/v1",
        "get --raw /healthz",
        "get --raw /readyz/ping",
        "get --raw /livez/nope",
    ),
    "wait": (
        "wait hpa/a-util --for=jsonpath={.spec.maxReplicas}=10 --timeout=1s",
        "wait deploy/nope --for=delete --timeout=1s",
        "wait pods --all --for=condition=Ready --timeout=1s",
    ),
}
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: made}
spec:
  minReplicas: 2
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: listed}
spec: {clusterIPs: [None], ports: [{port: 80}]}
"""
LARGER = HPA.replace("maxReplicas: 4", "maxReplicas: 5")
WRITING = {
    "create deployment": ("create deployment made --image=nginx --replicas=2 --port=80", "get deploy made -o yaml"),
    "create service": ("create service clusterip made --tcp=80:8080", "get svc made -o yaml"),
    "create nodeport": ("create service nodeport made2 --tcp=80", "describe svc made2"),
    "create externalname": ("create service externalname made3 --external-name=a.b", "get svc made3 -o yaml"),
    "services of other types": (
        "create service clusterip turned --tcp=80:8080",
        'patch svc turned -p {"spec":{"type":"NodePort"}}',
        "get svc turned -o yaml",
        'patch svc turned -p {"spec":{"ports":[{"port":80,"name":"80-8080","protocol":"UDP"}]}}',
        'patch svc turned -p {"spec":{"type":"LoadBalancer"}}',
        "get svc turned -o yaml",
        'patch svc turned -p {"spec":{"type":"ClusterIP"}}',
        "get svc turned -o yaml",
        'patch svc turned -p {"spec":{"clusterIP":""}}',
        'patch svc turned -p {"spec":{"clusterIP":"None"}}',
        'patch svc turned -p {"spec":{"type":"ExternalName"}}',
        'patch svc turned -p {"spec":{"type":"ExternalName","externalName":"a.b"}}',
        "get svc turned -o yaml",
        'patch svc turned -p {"spec":{"type":"ClusterIP"}}',
        ("create -f -", SERVICE),
        ("create -f -", SERVICE.replace("clusterIPs: [None]", "clusterIP: 1.2.3.x")),
    ),
    "stateful sets stay": (
        'patch sts db -p {"spec":{"podManagementPolicy":"Parallel"}}',
        'patch sts db -p {"spec":{"selector":{"matchLabels":{"x":"y"}}}}',
        'patch sts db -p {"spec":{"minReadySeconds":-1,"serviceName":"other"}}',
    ),
    "expose": ("expose deploy web --port=80 --name=exposed", "get svc exposed -o yaml"),
    "create configmap": ("create cm made --from-literal=a=b", "create cm made", "describe cm made"),
    "create secrets": (
        "create secret tls made --cert=/nope --key=/nope",
        "create secret docker-registry reg --docker-username=u --docker-password=p",
        "get secret reg -o yaml",
    ),
    "create job": ("create job made --image=busybox -- sleep 1", "get job made -o yaml", "describe job made"),
    "create quota": ("create quota made --hard=pods=3,cpu=1", "describe quota made", "get quota"),
    "create pdb": ("create pdb made --selector=app=web --min-available=1", "get pdb", "describe pdb made"),
    "create ingress": (
        "create ingress made --rule=a.b/c=web:80",
        "get ing",
        "describe ing made",
        "get ing made -o yaml",
    ),
    "create roles": (
        "create role made --verb=get,list --resource=pods",
        "create rolebinding made --role=made --user=somebody",
        "describe role made",
        "describe rolebinding made",
        "auth can-i list pods --as=somebody",
        "auth can-i delete pods --as=somebody",
        "auth can-i --list --as=somebody",
        "get pods nope --as=somebody",
        "delete pods nope --as=somebody",
    ),
    "create account": ("create sa made", "get sa made -o yaml", "describe sa made"),
    "run": ("run made --image=busybox --restart=Never", "get pod made -o yaml", "delete pod made --wait=false"),
    "create priority class": ("create priorityclass made --value=5 --description=d", "get pc made", "delete pc made"),
    "server-side apply": (
        ("apply --server-side -f - -o yaml --show-managed-fields", HPA),
        ("apply --server-side --field-manager=x -f -", LARGER),
        (
            "apply --server-side --field-manager=x --force-conflicts -f -",
            LARGER,
        ),
        "get hpa made -o yaml --show-managed-fields",
        ("diff -f -", HPA),
        ("apply -f -", HPA),
        "edit hpa made --show-managed-fields=nope",
        "delete hpa made",
    ),
    "set": (
        "set resources deploy web --requests=cpu=1",
        "set env deploy/web A=b",
        "set image deploy/web nope=nginx",
        "set image deploy/web app=nginx:9",
        "set selector svc web a=b",
        "set serviceaccount deploy web other",
        "get deploy web -o yaml",
    ),
    "rollout": (
        "rollout pause deploy/web",
        "rollout pause deploy/web",
        "rollout resume deploy/web",
        "rollout undo deploy/web",
    ),
    "label": (
        "label deploy web tier=one",
        "label deploy web tier=two",
        "label deploy web tier=two --overwrite",
        "label deploy web bad/key/here=1",
        "label deploy web tier=a+b",
        "annotate rs plain x=y",
        "label deploy nope a=b",
    ),
    "scale": (
        "scale deploy web --replicas=4",
        "scale deploy web --replicas=-1",
        "scale rc old --replicas=3 --resource-version=1",
        "scale sts db --replicas=2 --current-replicas=9",
        "scale rs plain --replicas=0",
        "scale cm settings --replicas=1",
        "scale pod web-1 --replicas=1",
    ),
    "patch": (
        'patch deploy web --type=json -p [{"op":"test","path":"/spec/replicas","value":77}]',
        'patch deploy web --type=json -p [{"op":"remove","path":"/spec/nope"}]',
        'patch deploy web -p {"spec":{"selector":{"matchLabels":{"x":"y"}}}}',
        'patch sts db -p {"spec":{"serviceName":"other"}}',
        "patch pod nope -p {}",
        'patch cm settings -p {"data":{"a":1}}',
        'patch secret creds -p {"data":{"a":"%%%"}}',
        'patch svc web -p {"spec":{"clusterIP":"10.0.0.77"}}',
    ),
    "taints and cordons": ("cordon nope", "taint node nope a=b:NoSchedule", "drain nope"),
    "delete": (
        "delete rs plain --cascade=orphan --wait=false",
        "get rs plain -o jsonpath={.metadata.finalizers}",
        "delete rs plain --cascade=foreground --wait=false",
        "get rs plain -o jsonpath={.metadata.finalizers}",
        "delete sts db --dry-run=server",
        "delete deploy,rc -l nope=nope",
        "delete cm settings --ignore-not-found",
        "delete svc --all",
    ),
}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """A real API server, and ours, with the same objects."""
    programs = cluster_plane.programs()
    if programs is None:
        prerequisites.REAL_PLANE.skip()
    folder = tmp_path_factory.mktemp("sides")
    for name in ("real", "ours"):
        (folder / name).mkdir()
    real, ours = cluster_plane.Plane(folder / "real", programs), Up(folder / "ours" / "data", ("--api-only",))
    try:
        real.start()
        ours.start()
        both = (Side(real.kubeconfig, folder / "real"), Side(ours.kubeconfig, folder / "ours"))
        for side in both:
            side.prepare(READ, *FIXTURES)
            side.prepare(WRITTEN, *FIXTURES)
        yield both
    finally:
        real.stop()
        ours.stop()


@pytest.mark.parametrize("commands", READING.values(), ids=READING.keys())
def test_reading(sides: tuple[Side, Side], commands: tuple[str, ...]) -> None:
    """The same objects look the same."""
    real, ours = (side.transcript(*commands, namespace=READ) for side in sides)
    if found := difference(real, ours):
        pytest.fail(found)


@pytest.mark.parametrize("commands", WRITING.values(), ids=WRITING.keys())
def test_writing(sides: tuple[Side, Side], commands: tuple[str | tuple[str, str], ...]) -> None:
    """The same changes have the same answers and leave the same objects."""
    real, ours = (side.transcript(*commands, namespace=WRITTEN) for side in sides)
    if found := difference(real, ours):
        pytest.fail(found)
