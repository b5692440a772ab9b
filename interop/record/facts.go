package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fact is one document of the fresh server, kept as a file.
type fact struct {
	file, path, accept string
	dense              bool // one line: too big to read anyway
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

var facts = []fact{
	{file: "rbac/clusterroles.json", path: "/apis/rbac.authorization.k8s.io/v1/clusterroles"},
	{file: "rbac/clusterrolebindings.json", path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"},
	{file: "rbac/roles.json", path: "/apis/rbac.authorization.k8s.io/v1/roles"},
	{file: "rbac/rolebindings.json", path: "/apis/rbac.authorization.k8s.io/v1/rolebindings"},
	{file: "objects/priorityclasses.json", path: "/apis/scheduling.k8s.io/v1/priorityclasses"},
	{file: "objects/namespaces.json", path: "/api/v1/namespaces"},
	{file: "objects/services.json", path: "/api/v1/services"},
	{file: "objects/endpoints.json", path: "/api/v1/endpoints"},
	{file: "objects/endpointslices.json", path: "/apis/discovery.k8s.io/v1/endpointslices"},
	{file: "objects/configmaps.json", path: "/api/v1/configmaps"},
	{file: "objects/servicecidrs.json", path: "/apis/networking.k8s.io/v1/servicecidrs"},
	{file: "objects/apiservices.json", path: "/apis/apiregistration.k8s.io/v1/apiservices"},
	{file: "discovery/api.json", path: "/api"},
	{file: "discovery/apis.json", path: "/apis"},
	{file: "discovery/api-aggregated.json", path: "/api", accept: aggregated},
	{file: "discovery/apis-aggregated.json", path: "/apis", accept: aggregated},
	{file: "discovery/root.json", path: "/"},
	{file: "discovery/version.json", path: "/version"},
	{file: "openapi/index.json", path: "/openapi/v3"},
}

func recordFacts(root, servers string) error {
	dir := filepath.Join(root, "..", "tests", "api", "facts")
	description, err := described(servers, filepath.Join(dir, "feature-gates.json"))
	if err != nil {
		return err
	}
	all, err := startCluster(servers, "all")
	if err != nil {
		return err
	}
	defer all.stop()
	standard, err := startCluster(servers, "default")
	if err != nil {
		return err
	}
	defer standard.stop()
	return errors.Join(
		groupVersions(description, all, standard, filepath.Join(dir, "group-versions.json")),
		documents(standard, dir))
}

func documents(c *cluster, dir string) error {
	wanted := slices.Clone(facts)
	index, err := c.document("/openapi/v3", "")
	if err != nil {
		return err
	}
	paths, err := at(index, ".paths")
	if err != nil {
		return err
	}
	for _, m := range paths.(*object).members {
		name := strings.ReplaceAll(m.key, "/", "_") + ".json"
		wanted = append(wanted, fact{file: "openapi/" + name, path: "/openapi/v3/" + m.key, dense: true})
		if m.key == "api/v1" || strings.HasPrefix(m.key, "apis/") && strings.Count(m.key, "/") == 2 {
			wanted = append(wanted, fact{file: "discovery/" + name, path: "/" + m.key})
		}
	}
	for _, f := range wanted {
		v, err := c.document(f.path, f.accept)
		if err != nil {
			return err
		}
		n := normaliser{servers: c.names()}
		v = c.steady(n.normalise(v, options{path: f.path}))
		text := pretty(v)
		if f.dense {
			text = compact(v, false)
		}
		if err := writeFact(filepath.Join(dir, f.file), text); err != nil {
			return err
		}
	}
	return nil
}

// steady replaces what else differs between two servers in these documents: keys, the port, the day.
func (c *cluster) steady(v value) value {
	_, port, _ := strings.Cut(c.host, ":")
	switch t := v.(type) {
	case *array:
		for i := range t.items {
			t.items[i] = c.steady(t.items[i])
		}
	case *object:
		for i := range t.members {
			t.members[i].val = c.steady(t.members[i].val)
		}
	case json.Number:
		if t.String() == port {
			return "<port>"
		}
	case string:
		if strings.HasPrefix(t, "-----BEGIN ") {
			return "<pem>"
		}
		return dayPattern.ReplaceAllString(t, "<day>")
	}
	return v
}

var dayPattern = regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}$`)

func writeFact(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, []byte(text+"\n"), 0o644))
}

func (c *cluster) document(path, accept string) (value, error) {
	client, err := c.client("admin")
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, "https://"+c.host+path, nil)
	if err != nil {
		return nil, err
	}
	if accept == "" {
		accept = "application/json"
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", path, resp.Status, data)
	}
	return parseJSON(data)
}

// described writes feature-gates.json: all gates that --feature-gates knows, GA ones included, as the
// servers program reports them from the API server's own registry.
func described(servers, path string) (value, error) {
	out, err := exec.Command(servers, "describe").Output()
	if err != nil {
		return nil, err
	}
	v, err := parseJSON(out)
	if err != nil {
		return nil, err
	}
	gates, err := at(v, ".featureGates")
	if err != nil {
		return nil, err
	}
	return v, writeFact(path, pretty(gates))
}

// groupVersions writes every group version that --runtime-config knows, whether it is served without
// any flag and whether with api/all=true. (The rest needs a feature gate or is not served any more.)
func groupVersions(description value, all, standard *cluster, path string) error {
	known, err := at(description, ".groupVersions")
	if err != nil {
		return err
	}
	withAll, err := all.servedVersions()
	if err != nil {
		return err
	}
	withNone, err := standard.servedVersions()
	if err != nil {
		return err
	}
	list := &array{}
	for _, name := range known.(*array).items {
		gv := name.(string)
		list.items = append(list.items, &object{[]member{
			{"groupVersion", gv}, {"served", withNone[gv]}, {"servedWithApiAll", withAll[gv]},
		}})
	}
	return writeFact(path, pretty(list))
}

func (c *cluster) servedVersions() (map[string]bool, error) {
	served := map[string]bool{}
	for _, of := range []string{"/api", "/apis"} {
		v, err := c.document(of, "")
		if err != nil {
			return nil, err
		}
		collectGroupVersions(v, served)
	}
	return served, nil
}

func collectGroupVersions(v value, into map[string]bool) {
	switch t := v.(type) {
	case *array:
		for _, item := range t.items {
			collectGroupVersions(item, into)
		}
	case *object:
		if gv := t.getString("groupVersion"); gv != "" {
			into[gv] = true
		}
		if versions, ok := t.get("versions"); ok && t.getString("kind") == "APIVersions" {
			for _, item := range versions.(*array).items {
				into[item.(string)] = true
			}
		}
		for _, m := range t.members {
			collectGroupVersions(m.val, into)
		}
	}
}
