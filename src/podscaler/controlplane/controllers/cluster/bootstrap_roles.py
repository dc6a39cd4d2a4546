"""The default RBAC roles and bindings of a cluster, as tables.

Called by `bootstrap`, which makes objects of them. A rule is a line of up to four parts

    verbs | API groups (empty: the core group) | resources | names of objects

or `verbs @ paths`; a part is a comma-separated list. Roles of components that do not exist here and do not connect to
this API server are left out.


Source: the default roles and role bindings of the RBAC documentation; what a v1.37 server makes at its first start.
"""

from collections.abc import Mapping

_READ = "get,list,watch"
_WRITE = "create,delete,deletecollection,patch,update"
_ALL_VERBS = "create,delete,deletecollection,get,list,patch,update,watch"
_OWN = "create,delete,get,list,patch,update,watch"
_EVENTS = "create,patch,update | ,events.k8s.io | events"
_REVIEW_TOKENS = "create | authentication.k8s.io | tokenreviews"
_REVIEW_ACCESS = "create | authorization.k8s.io | subjectaccessreviews"

Rules = tuple[str, ...]

AGGREGATED: Mapping[str, str] = {"admin": "", "edit": "admin", "view": "edit"}
"""Aggregated ClusterRoles, each with the role that it is aggregated to (empty: none)."""

AGGREGATED_PARTS: Mapping[str, Rules] = {
    "admin": (
        "create | authorization.k8s.io | localsubjectaccessreviews",
        f"{_ALL_VERBS} | rbac.authorization.k8s.io | rolebindings,roles",
    ),
    "edit": (
        f"{_READ} | | pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy",
        "impersonate | | serviceaccounts",
        f"{_WRITE} | | pods,pods/attach,pods/exec,pods/portforward,pods/proxy",
        "create | | pods/eviction",
        f"{_WRITE} | | configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,"
        "secrets,serviceaccounts,services,services/proxy",
        "create | | serviceaccounts/token",
        f"{_WRITE} | apps | daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,"
        "replicasets/scale,statefulsets,statefulsets/scale",
        f"{_WRITE} | autoscaling | horizontalpodautoscalers",
        f"{_WRITE} | batch | cronjobs,jobs",
        f"{_WRITE} | extensions | daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,"
        "networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale",
        f"{_WRITE} | policy | poddisruptionbudgets",
        f"{_WRITE} | networking.k8s.io | ingresses,networkpolicies",
        f"{_ALL_VERBS} | coordination.k8s.io | leases",
    ),
    "view": (
        f"{_READ} | | configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,"
        "replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status",
        f"{_READ} | | bindings,events,limitranges,namespaces/status,pods/log,pods/status,"
        "replicationcontrollers/status,resourcequotas,resourcequotas/status",
        f"{_READ} | | namespaces",
        f"{_READ} | discovery.k8s.io | endpointslices",
        f"{_READ} | apps | controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,"
        "deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,"
        "statefulsets/status",
        f"{_READ} | autoscaling | horizontalpodautoscalers,horizontalpodautoscalers/status",
        f"{_READ} | batch | cronjobs,cronjobs/status,jobs,jobs/status",
        f"{_READ} | extensions | daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,"
        "ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,"
        "replicationcontrollers/scale",
        f"{_READ} | policy | poddisruptionbudgets,poddisruptionbudgets/status",
        f"{_READ} | networking.k8s.io | ingresses,ingresses/status,networkpolicies",
    ),
}
"""The rules of `system:aggregate-to-NAME`, which are aggregated to the role NAME."""

_USERS: Mapping[str, Rules] = {
    "cluster-admin": ("* | * | *", "* @ *"),
    "system:auth-delegator": (_REVIEW_TOKENS, _REVIEW_ACCESS),
    "system:basic-user": (
        "create | authorization.k8s.io | selfsubjectaccessreviews,selfsubjectrulesreviews",
        "create | authentication.k8s.io | selfsubjectreviews",
    ),
    "system:discovery": (
        "get @ /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/",
    ),
    "system:monitoring": ("get @ /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*",),
    "system:public-info-viewer": ("get @ /healthz,/livez,/readyz,/version,/version/",),
    "system:service-account-issuer-discovery": ("get @ /.well-known/openid-configuration,/openid/v1/jwks",),
}

_COMPONENTS: Mapping[str, Rules] = {
    "system:kube-aggregator": (f"{_READ} | | endpoints,services",),
    "system:kube-controller-manager": (
        _EVENTS,
        "create | coordination.k8s.io | leases",
        "get,update | coordination.k8s.io | leases | kube-controller-manager",
        "create | | secrets,serviceaccounts",
        "delete | | secrets",
        "get | | configmaps,namespaces,secrets,serviceaccounts",
        "update | | secrets,serviceaccounts",
        _REVIEW_TOKENS,
        _REVIEW_ACCESS,
        "list,watch | * | *",
        "create | | serviceaccounts/token",
    ),
    "system:kube-dns": ("list,watch | | endpoints,services",),
    "system:kube-scheduler": (
        _EVENTS,
        "create | coordination.k8s.io | leases",
        "get,update | coordination.k8s.io | leases | kube-scheduler",
        f"{_READ} | | nodes",
        f"delete,{_READ} | | pods",
        "create | | bindings,pods/binding",
        "patch,update | | pods/status",
        f"{_READ} | | replicationcontrollers,services",
        f"{_READ} | apps,extensions | replicasets",
        f"{_READ} | apps | statefulsets",
        f"{_READ} | policy | poddisruptionbudgets",
        f"{_READ} | | persistentvolumeclaims,persistentvolumes",
        _REVIEW_TOKENS,
        _REVIEW_ACCESS,
        f"{_READ} | | namespaces",
    ),
    "system:kubelet-api-admin": (
        f"{_READ} | | nodes",
        "proxy | | nodes",
        "* | | nodes/log,nodes/metrics,nodes/proxy,nodes/stats",
    ),
    "system:node": (
        _REVIEW_TOKENS,
        "create | authorization.k8s.io | localsubjectaccessreviews,subjectaccessreviews",
        f"{_READ} | | services",
        f"create,{_READ} | | nodes",
        "patch,update | | nodes/status",
        "patch,update | | nodes",
        "create,patch,update | | events",
        f"{_READ} | | pods",
        "create,delete | | pods",
        "patch,update | | pods/status",
        "create | | pods/eviction",
        f"{_READ} | | configmaps,secrets",
        "get | | persistentvolumeclaims,persistentvolumes",
        "get | | endpoints",
        "create,delete,get,patch,update | coordination.k8s.io | leases",
        "create | | serviceaccounts/token",
        "get,patch,update | | persistentvolumeclaims/status",
        f"{_READ} | node.k8s.io | runtimeclasses",
    ),
    "system:node-problem-detector": ("get | | nodes", "patch | | nodes/status", _EVENTS),
    "system:node-proxier": (
        "list,watch | | endpoints,services",
        f"{_READ} | | nodes",
        _EVENTS,
        "list,watch | discovery.k8s.io | endpointslices",
    ),
}

AUTOSCALER = "podscaler:horizontal-pod-autoscaler"
"""The role of podscaler's autoscaler: its permissions beyond those of upstream's."""
_HISTORIES = ",".join(("podscaler-history", *(f"podscaler-history-{shard:02}" for shard in range(16))))
_OURS: Mapping[str, Rules] = {
    AUTOSCALER: (
        "list,watch | apps | deployments,replicasets,statefulsets",
        "list,watch | | replicationcontrollers",
        "list,watch | podscaler.dev | podautoscalers",
        "update | podscaler.dev | podautoscalers/status",
    ),
}

CLUSTER_ROLES: Mapping[str, Rules] = {**_USERS, **_COMPONENTS, **_OURS}
"""ClusterRoles by name, except those of controllers and the aggregated ones."""

CONTROLLERS: Mapping[str, Rules] = {
    "clusterrole-aggregation-controller": (
        "escalate,get,list,patch,update,watch | rbac.authorization.k8s.io | clusterroles",
    ),
    "cronjob-controller": (
        "get,list,update,watch | batch | cronjobs",
        f"{_OWN} | batch | jobs",
        "update | batch | cronjobs/status",
        "update | batch | cronjobs/finalizers",
        "delete,list,watch | | pods",
        _EVENTS,
    ),
    "daemon-set-controller": (
        f"{_READ} | apps,extensions | daemonsets",
        "update | apps,extensions | daemonsets/status",
        "update | apps,extensions | daemonsets/finalizers",
        "list,watch | | nodes",
        "create,delete,list,patch,watch | | pods",
        "create | | pods/binding",
        f"{_OWN} | apps | controllerrevisions",
        _EVENTS,
    ),
    "deployment-controller": (
        "get,list,update,watch | apps,extensions | deployments",
        "update | apps,extensions | deployments/status",
        "update | apps,extensions | deployments/finalizers",
        f"{_OWN} | apps,extensions | replicasets",
        "get,list,update,watch | | pods",
        _EVENTS,
    ),
    "disruption-controller": (
        f"{_READ} | apps,extensions | deployments",
        f"{_READ} | apps,extensions | replicasets",
        f"{_READ} | | replicationcontrollers",
        f"{_READ} | policy | poddisruptionbudgets",
        f"{_READ} | apps | statefulsets",
        "update | policy | poddisruptionbudgets/status",
        "patch,update | | pods/status",
        "get | * | */scale",
        _EVENTS,
    ),
    "endpoint-controller": (
        f"{_READ} | | pods,services",
        "create,delete,get,list,update,watch | | endpoints",
        "create | | endpoints/restricted",
        _EVENTS,
    ),
    "endpointslice-controller": (
        f"{_READ} | | nodes,pods,services",
        "update | | services/finalizers",
        "create,delete,get,list,update,watch | discovery.k8s.io | endpointslices",
        _EVENTS,
    ),
    "endpointslicemirroring-controller": (
        f"{_READ} | | endpoints,services",
        "update | | services/finalizers",
        "update | | endpoints/finalizers",
        "create,delete,get,list,update,watch | discovery.k8s.io | endpointslices",
        _EVENTS,
    ),
    "generic-garbage-collector": ("delete,get,list,patch,update,watch | * | *", _EVENTS),
    "horizontal-pod-autoscaler": (
        f"{_READ} | autoscaling | horizontalpodautoscalers",
        "update | autoscaling | horizontalpodautoscalers/status",
        "get,update | * | */scale",
        "list,watch | | pods",
        "list,watch | metrics.k8s.io | pods",
        f"{_READ} | custom.metrics.k8s.io | *",
        f"{_READ} | external.metrics.k8s.io | *",
        _EVENTS,
    ),
    "job-controller": (
        "get,list,patch,update,watch | batch | jobs",
        "update | batch | jobs/status",
        "update | batch | jobs/finalizers",
        "create,delete,list,patch,watch | | pods",
        _EVENTS,
    ),
    "namespace-controller": (
        f"delete,{_READ} | | namespaces",
        "update | | namespaces/finalize,namespaces/status",
        f"delete,deletecollection,{_READ} | * | *",
    ),
    "node-controller": (
        "delete,get,list,patch,update,watch | | nodes",
        "patch,update | | nodes/status",
        "patch,update | | pods/status",
        f"delete,{_READ} | | pods",
        _EVENTS,
    ),
    "pod-garbage-collector": (
        "delete,list,watch | | pods",
        f"{_READ} | | nodes",
        "patch | | pods/status",
    ),
    "replicaset-controller": (
        "get,list,update,watch | apps,extensions | replicasets",
        "update | apps,extensions | replicasets/status",
        "update | apps,extensions | replicasets/finalizers",
        "create,delete,list,patch,watch | | pods",
        _EVENTS,
    ),
    "replication-controller": (
        "get,list,update,watch | | replicationcontrollers",
        "update | | replicationcontrollers/status",
        "update | | replicationcontrollers/finalizers",
        "create,delete,list,patch,watch | | pods",
        _EVENTS,
    ),
    "resourcequota-controller": ("list,watch | * | *", "update | | resourcequotas/status", _EVENTS),
    "root-ca-cert-publisher": ("create,update | | configmaps", _EVENTS),
    "service-account-controller": ("create | | serviceaccounts", _EVENTS),
    "service-controller": (
        f"{_READ} | | services",
        "patch,update | | services/status",
        "list,watch | | nodes",
        _EVENTS,
    ),
    "statefulset-controller": (
        "list,watch | | pods",
        f"{_READ} | apps | statefulsets",
        "update | apps | statefulsets/status",
        "update | apps | statefulsets/finalizers",
        "create,delete,get,patch,update | | pods",
        f"{_OWN} | apps | controllerrevisions",
        f"create,{_READ} | | persistentvolumeclaims",
        "delete,update | | persistentvolumeclaims",
        "update | | pods/finalizers",
        _EVENTS,
    ),
    "ttl-after-finished-controller": (f"delete,{_READ} | batch | jobs", _EVENTS),
    "ttl-controller": ("list,patch,update,watch | | nodes", _EVENTS),
}
"""The rules of `system:controller:NAME`, bound to the service account NAME of kube-system."""

_LOCKING = (
    "create,get,list,update,watch | coordination.k8s.io | leases",
    "create,get,list,update,watch | coordination.k8s.io | leasecandidates",
)

ROLES: Mapping[tuple[str, str], Rules] = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        f"{_READ} | | configmaps",
        "update | | configmaps | cluster-info",
        _EVENTS,
    ),
    ("kube-system", AUTOSCALER): ("create | | configmaps", f"get,patch,update | | configmaps | {_HISTORIES}"),
    ("kube-system", "extension-apiserver-authentication-reader"): (
        f"{_READ} | | configmaps | extension-apiserver-authentication",
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): _LOCKING,
    ("kube-system", "system::leader-locking-kube-scheduler"): _LOCKING,
    ("kube-system", "system:controller:bootstrap-signer"): (f"{_READ} | | secrets",),
    ("kube-system", "system:controller:cloud-provider"): ("create,get,list,watch | | configmaps",),
    ("kube-system", "system:controller:token-cleaner"): (f"delete,{_READ} | | secrets", _EVENTS),
}
"""Roles by namespace and name."""

_AUTOSCALER_ACCOUNT = ("ServiceAccount kube-system/horizontal-pod-autoscaler",)
_EVERYBODY = ("Group system:authenticated",)

CLUSTER_ROLE_BINDINGS: Mapping[str, tuple[str, ...]] = {
    AUTOSCALER: _AUTOSCALER_ACCOUNT,
    "cluster-admin": ("Group system:masters",),
    "system:basic-user": _EVERYBODY,
    "system:discovery": _EVERYBODY,
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount kube-system/kube-dns",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:monitoring": ("Group system:monitoring",),
    "system:node": (),
    "system:node-proxier": ("User system:kube-proxy",),
    "system:public-info-viewer": (*_EVERYBODY, "Group system:unauthenticated"),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
}
"""The subjects of the ClusterRoleBinding of each name, which binds the ClusterRole of the same name."""


def _own(controller: str) -> tuple[str, tuple[str, ...]]:
    """The role of a controller, bound to its service account."""
    return f"system:controller:{controller}", (f"ServiceAccount kube-system/{controller}",)


def _locking(component: str) -> tuple[str, tuple[str, ...]]:
    """The role for the leader election of a component, bound to its user and service account."""
    subjects = (f"User system:{component}", f"ServiceAccount kube-system/{component}")
    return f"system::leader-locking-{component}", subjects


ROLE_BINDINGS: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("kube-public", "system:controller:bootstrap-signer"): _own("bootstrap-signer"),
    ("kube-system", AUTOSCALER): (AUTOSCALER, _AUTOSCALER_ACCOUNT),
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): _locking("kube-controller-manager"),
    ("kube-system", "system::leader-locking-kube-scheduler"): _locking("kube-scheduler"),
    ("kube-system", "system:controller:bootstrap-signer"): _own("bootstrap-signer"),
    ("kube-system", "system:controller:cloud-provider"): _own("cloud-provider"),
    ("kube-system", "system:controller:token-cleaner"): _own("token-cleaner"),
}
"""RoleBindings by namespace and name: the name of the Role, and the subjects."""
