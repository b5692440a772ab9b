// Command extract writes src/api/proto/*.proto from the Go modules of Kubernetes: names, numbers and
// rules only, no text. Run it when the Kubernetes level rises:
//
//	go run ./interop/extract -modules ~/go/pkg/mod -out src/api/proto
//
// Where each fact comes from:
//
//	types.go            field order, JSON names, omitempty/omitzero, pointers, inlining, protobuf tags
//	generated.proto     checked: every message and field number must agree with what types.go gave
//	zz_generated.openapi.go (k8s.io/kubernetes)
//	                    required, defaults, enums, list types, map keys, merge keys
//	api/discovery (k8s.io/kubernetes)
//	                    resources.txt: plurals, verbs, short names, subresources, storage hashes
//
// Comments that stand before a message or a field in an existing output file are ours and are kept.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// A source package and the file that it becomes.
type source struct {
	module string // path below the module cache
	dir    string
	goPath string
	file   string // without ".proto"
	group  string
}

const apiVersion, kubeVersion = "v0.36.3", "v1.36.3"

func api(group, dir, file string) source {
	return source{"k8s.io/api@" + apiVersion, dir, "k8s.io/api/" + dir, file, group}
}

func machinery(group, dir, file string) source {
	return source{"k8s.io/apimachinery@" + apiVersion, dir, "k8s.io/apimachinery/" + dir, file, group}
}

var sources = []source{
	machinery("", "pkg/api/resource", "quantity"),
	machinery("", "pkg/util/intstr", "intstr"),
	machinery("", "pkg/runtime", "runtime"),
	machinery("", "pkg/version", "version"),
	machinery("meta.k8s.io", "pkg/apis/meta/v1", "meta_v1"),
	api("", "core/v1", "core_v1"),
	api("admission.k8s.io", "admission/v1", "admission_v1"),
	api("admissionregistration.k8s.io", "admissionregistration/v1", "admissionregistration_v1"),
	api("apidiscovery.k8s.io", "apidiscovery/v2", "apidiscovery_v2"),
	api("apps", "apps/v1", "apps_v1"),
	api("authentication.k8s.io", "authentication/v1", "authentication_v1"),
	api("authorization.k8s.io", "authorization/v1", "authorization_v1"),
	api("autoscaling", "autoscaling/v1", "autoscaling_v1"),
	api("autoscaling", "autoscaling/v2", "autoscaling_v2"),
	api("batch", "batch/v1", "batch_v1"),
	api("certificates.k8s.io", "certificates/v1", "certificates_v1"),
	api("coordination.k8s.io", "coordination/v1", "coordination_v1"),
	api("discovery.k8s.io", "discovery/v1", "discovery_v1"),
	api("events.k8s.io", "events/v1", "events_v1"),
	api("flowcontrol.apiserver.k8s.io", "flowcontrol/v1", "flowcontrol_v1"),
	api("networking.k8s.io", "networking/v1", "networking_v1"),
	api("node.k8s.io", "node/v1", "node_v1"),
	api("policy", "policy/v1", "policy_v1"),
	api("rbac.authorization.k8s.io", "rbac/v1", "rbac_v1"),
	api("resource.k8s.io", "resource/v1", "resource_v1"),
	api("resource.k8s.io", "resource/v1beta1", "resource_v1beta1"),
	api("resource.k8s.io", "resource/v1beta2", "resource_v1beta2"),
	api("resource.k8s.io", "resource/v1alpha3", "resource_v1alpha3"),
	api("scheduling.k8s.io", "scheduling/v1", "scheduling_v1"),
	api("scheduling.k8s.io", "scheduling/v1alpha2", "scheduling_v1alpha2"),
	api("storage.k8s.io", "storage/v1", "storage_v1"),
	{"k8s.io/apiextensions-apiserver@" + apiVersion, "pkg/apis/apiextensions/v1",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "apiextensions_v1",
		"apiextensions.k8s.io"},
}

func main() {
	home, _ := os.UserHomeDir()
	modules := flag.String("modules", filepath.Join(home, "go/pkg/mod"), "Go module cache")
	out := flag.String("out", "src/api/proto", "folder of the .proto files")
	flag.Parse()
	log.SetFlags(0)

	w := &world{packages: map[string]*pkg{}}
	for _, s := range sources {
		p, err := load(filepath.Join(*modules, s.module, s.dir), s)
		if err != nil {
			log.Fatal(err)
		}
		w.packages[s.goPath] = p
	}
	facts, err := readOpenAPI(filepath.Join(*modules, "k8s.io/kubernetes@"+kubeVersion,
		"pkg/generated/openapi/zz_generated.openapi.go"))
	if err != nil {
		log.Fatal(err)
	}
	w.openapi = facts
	for _, s := range sources {
		p := w.packages[s.goPath]
		if err := w.build(p); err != nil {
			log.Fatalf("%s: %v", s.file, err)
		}
	}
	bad := 0
	for _, s := range sources {
		p := w.packages[s.goPath]
		for _, problem := range checkNumbers(p, filepath.Join(*modules, s.module, s.dir, "generated.proto")) {
			log.Printf("%s: %s", s.file, problem)
			bad++
		}
		path := filepath.Join(*out, s.file+".proto")
		text := w.render(p, readComments(path))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	resources, err := renderResources(filepath.Join(*modules, "k8s.io/kubernetes@"+kubeVersion, "api/discovery"))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*out, "resources.txt"), []byte(resources), 0o644); err != nil {
		log.Fatal(err)
	}
	total := 0
	for _, s := range sources {
		n := 0
		for _, m := range w.packages[s.goPath].messages {
			n += len(m.fields)
		}
		fmt.Printf("%-28s %4d messages %5d fields\n", s.file, len(w.packages[s.goPath].messages), n)
		total += n
	}
	fmt.Printf("%d fields\n", total)
	if bad > 0 {
		log.Fatalf("%d disagreements with generated.proto", bad)
	}
}

// "k8s.io/api/core/v1" -> "io.k8s.api.core.v1".
func modelPrefix(goPath string) string {
	parts := strings.Split(goPath, "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(host, parts[1:]...), ".")
}
