package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The fields that a field selector may name besides metadata.name and metadata.namespace.
// Source: AddFieldLabelConversionFunc in k8s.io/kubernetes pkg/apis/*/v*/conversion.go at v1.36.3.
var selectable = map[string][]string{
	"v1 pods": {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"},
	"v1 nodes":                  {"spec.unschedulable"},
	"v1 replicationcontrollers": {"status.replicas"},
	"v1 events": {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
		"involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"},
	"v1 namespaces": {"status.phase"},
	"v1 secrets":    {"type"},
	"v1 services":   {"spec.clusterIP", "spec.type"},
	"events.k8s.io/v1 events": {"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
		"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason",
		"reportingController", "type"},
	"batch/v1 jobs": {"status.successful"},
	"certificates.k8s.io/v1 certificatesigningrequests": {"spec.signerName"},
	"resource.k8s.io/v1 resourceslices":                 {"spec.nodeName", "spec.driver"},
	"resource.k8s.io/v1beta1 resourceslices":            {"spec.nodeName", "spec.driver"},
	"resource.k8s.io/v1beta2 resourceslices":            {"spec.nodeName", "spec.driver"},
}

type apiResource struct {
	Name, SingularName, Kind, Group, Version string
	Namespaced                               bool
	Verbs, ShortNames, Categories            []string
	StorageVersionHash                       string
}

type apiResourceList struct {
	GroupVersion string
	Resources    []apiResource
}

// Writes resources.txt from the discovery answers that the Kubernetes repository records.
func renderResources(folder string) (string, error) {
	var groups struct {
		Groups []struct {
			Name     string
			Versions []struct{ GroupVersion, Version string }
		}
	}
	if err := readJSON(filepath.Join(folder, "apis.json"), &groups); err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, s := range sources {
		known[s.group+"/"+s.goPath[strings.LastIndex(s.goPath, "/")+1:]] = true
	}
	var out strings.Builder
	out.WriteString("# Written by interop/extract from the recorded discovery of Kubernetes. Message ResourceFile of\n" +
		"# options.proto. Groups in the order of discovery.\n")
	files := []string{"api__v1.json"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if known[g.Name+"/"+v.Version] {
				files = append(files, "apis__"+g.Name+"__"+v.Version+".json")
			}
		}
	}
	for _, f := range files {
		var l apiResourceList
		if err := readJSON(filepath.Join(folder, f), &l); err != nil {
			return "", err
		}
		for _, r := range l.Resources {
			if !strings.Contains(r.Name, "/") {
				resourceText(&out, l, r)
			}
		}
	}
	return out.String(), nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func resourceText(out *strings.Builder, l apiResourceList, r apiResource) {
	line := func(name string, values []string) {
		if len(values) > 0 {
			fmt.Fprintf(out, "  %s: [%s]\n", name, quoted(values))
		}
	}
	fmt.Fprintf(out, "resource {\n  group_version: %q plural: %q singular: %q kind: %q\n", l.GroupVersion,
		r.Name, r.SingularName, r.Kind)
	line("short_names", r.ShortNames)
	line("categories", r.Categories)
	line("verbs", r.Verbs)
	if !r.Namespaced {
		out.WriteString("  cluster: true\n")
	}
	if len(r.Verbs) == 1 && r.Verbs[0] == "create" {
		out.WriteString("  review: true\n")
	}
	for _, s := range l.Resources {
		if name, ok := strings.CutPrefix(s.Name, r.Name+"/"); ok {
			kind := s.Kind
			if s.Version != "" {
				kind = strings.TrimPrefix(s.Group+"/", "/") + s.Version + " " + kind
			}
			fmt.Fprintf(out, "  sub { name: %q kind: %q verbs: [%s] }\n", name, kind, quoted(s.Verbs))
		}
	}
	line("selectable", selectable[l.GroupVersion+" "+r.Name])
	if r.StorageVersionHash != "" {
		fmt.Fprintf(out, "  hash: %q\n", r.StorageVersionHash)
	}
	out.WriteString("}\n")
}
