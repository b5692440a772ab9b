package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

type gateFact struct {
	Name          string `json:"name"`
	Stage         string `json:"stage"`
	Default       bool   `json:"default"`
	LockToDefault bool   `json:"lockToDefault"`
}

type descriptionOfServer struct {
	FeatureGates  []gateFact `json:"featureGates"`
	GroupVersions []string   `json:"groupVersions"`
}

// describe prints what --feature-gates and --runtime-config know, GA gates included (--help hides them).
func describe(w io.Writer) error {
	var d descriptionOfServer
	version := compatibility.DefaultBuildEffectiveVersion().EmulationVersion()
	for name, specs := range utilfeature.DefaultMutableFeatureGate.GetAllVersioned() {
		// The spec in force is the newest that is not younger than the version served.
		var now *featuregate.FeatureSpec
		for i := range specs {
			if !specs[i].Version.GreaterThan(version) {
				now = &specs[i]
			}
		}
		if now == nil {
			continue
		}
		stage := string(now.PreRelease)
		if stage == "" {
			stage = "GA"
		}
		d.FeatureGates = append(d.FeatureGates, gateFact{
			Name: string(name), Stage: stage, Default: now.Default, LockToDefault: now.LockToDefault,
		})
	}
	slices.SortFunc(d.FeatureGates, func(a, b gateFact) int { return strings.Compare(a.Name, b.Name) })
	known := []schema.GroupVersion{
		{Group: "apiextensions.k8s.io", Version: "v1"}, {Group: "apiregistration.k8s.io", Version: "v1"},
	}
	known = append(known, legacyscheme.Scheme.PrioritizedVersionsAllGroups()...)
	for _, gv := range known {
		if gv.Version != "__internal" {
			d.GroupVersions = append(d.GroupVersions, gv.String())
		}
	}
	slices.Sort(d.GroupVersions)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}
