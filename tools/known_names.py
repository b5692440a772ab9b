#!/usr/bin/env python3
"""Writes src/lab/kubernetes_1_36.txt: the feature gates, group versions and admission plugins that
Kubernetes 1.36 knows.

From the recorded facts of the real API server; run it again after `./dev record`.
"""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests/api/facts"
# AllOrderedPlugins of k8s.io/kubernetes v1.36.3, pkg/kubeapiserver/options/plugins.go.
PLUGINS = """
AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists LimitPodHardAntiAffinityTopology
LimitRanger ServiceAccount NodeRestriction TaintNodesByCondition AlwaysPullImages ImagePolicyWebhook
PodSecurity PodNodeSelector Priority DefaultTolerationSeconds PodTolerationRestriction EventRateLimit
ExtendedResourceToleration DefaultStorageClass StorageObjectInUseProtection PodGroupProtection
OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize RuntimeClass CertificateApproval
CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction DefaultIngressClass
DenyServiceExternalIPs PodTopologyLabels PodGroupWorkloadExists NodeDeclaredFeatureValidator JobValidation
PodResizeValidator MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy
ValidatingAdmissionWebhook ResourceQuota AlwaysDeny
""".split()


def main():
    lines = [
        "# Feature gates (name stage default locked) and group versions of Kubernetes 1.36, from"
        " tests/api/facts; admission plugins.",
        "# Written by tools/known_names.py.",
    ]
    for gate in json.loads((FACTS / "feature-gates.json").read_text()):
        lines.append(
            f"gate {gate['name']} {gate['stage']} {str(gate['default']).lower()}"
            f" {str(gate['lockToDefault']).lower()}"
        )
    for version in json.loads((FACTS / "group-versions.json").read_text()):
        lines.append(f"version {version['groupVersion']} {str(version['served']).lower()}")
    lines += [f"plugin {name}" for name in PLUGINS]
    (ROOT / "src/lab/kubernetes_1_36.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
