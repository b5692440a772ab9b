// Command record asks the real kube-apiserver and writes its answers down.
//
//	go run ./record build            builds the real servers into the user's cache, once
//	go run ./record cases [FILE...]  rewrites the answers of tests/api/*.case (or of the files named)
//	go run ./record check [FILE...]  asks again and shows what differs; changes nothing
//	go run ./record facts            rewrites tests/api/facts
//	go run ./record [all]            facts, then cases
//	go run ./record serve [PROFILE]  starts the servers, prints how to reach them, until interrupted
//
// Exit codes: 0 done, 1 something failed or differs, 2 wrong use.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
)

const (
	kubernetesVersion = "v1.36.3"
	versionPackage    = "k8s.io/component-base/version"
)

var commands = []string{"all", "build", "cases", "check", "facts", "serve"}

func main() {
	word, args := "all", os.Args[1:]
	if len(args) > 0 {
		word, args = args[0], args[1:]
	}
	if !slices.Contains(commands, word) {
		fmt.Fprintln(os.Stderr, "usage: record", strings.Join(commands, "|"))
		os.Exit(2)
	}
	root, err := interopRoot()
	if err == nil {
		err = run(root, word, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(root, word string, args []string) error {
	servers, err := serversPath(root)
	if err != nil {
		return err
	}
	if _, err := os.Stat(servers); err != nil {
		fmt.Fprintln(os.Stderr, "building the real servers, once:", servers)
		if err := build(root, servers); err != nil {
			return err
		}
	}
	switch word {
	case "cases":
		return recordCases(root, servers, args, true)
	case "check":
		return recordCases(root, servers, args, false)
	case "facts":
		return recordFacts(root, servers)
	case "all":
		return errors.Join(recordFacts(root, servers), recordCases(root, servers, nil, true))
	case "serve":
		return serve(servers, args)
	}
	return nil
}

// interopRoot is the folder of this module, from wherever in the repository the command was started.
func interopRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("start me inside interop/")
	}
	return filepath.Dir(mod), nil
}

// serversPath is where the built servers are kept for all checkouts: in the user's cache, under a name that
// changes with what they are built from.
func serversPath(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(root, "servers", "*.go"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range append(sources, filepath.Join(root, "go.sum")) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	name := fmt.Sprintf("servers-%s-%x", kubernetesVersion, sum.Sum(nil)[:6])
	return filepath.Join(cache, "sextant-interop", name), nil
}

func build(root, servers string) error {
	flags := "-s -w"
	for name, text := range map[string]string{
		"gitVersion": kubernetesVersion, "gitMajor": "1", "gitMinor": "36", "gitTreeState": "clean",
	} {
		flags += fmt.Sprintf(" -X %s.%s=%s", versionPackage, name, text)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", servers, "./servers")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	return cmd.Run()
}

func recordCases(root, servers string, files []string, write bool) error {
	if len(files) == 0 {
		found, err := filepath.Glob(filepath.Join(root, "..", "tests", "api", "*.case"))
		if err != nil {
			return err
		}
		files = found
	}
	sort.Strings(files)
	byProfile := map[string][]*caseFile{}
	var profileNames []string
	for _, path := range files {
		c, err := readCase(path)
		if err != nil {
			return err
		}
		if byProfile[c.server] == nil {
			profileNames = append(profileNames, c.server)
		}
		byProfile[c.server] = append(byProfile[c.server], c)
	}
	var failures []error
	for _, profile := range profileNames {
		cluster, err := startCluster(servers, profile)
		if err != nil {
			return err
		}
		for _, c := range byProfile[profile] {
			if err := recordOne(cluster, c, write); err != nil {
				failures = append(failures, err)
			}
		}
		cluster.stop()
	}
	return errors.Join(failures...)
}

func recordOne(cluster *cluster, c *caseFile, write bool) error {
	before := make([][]string, len(c.steps))
	for i, s := range c.steps {
		before[i] = s.answer
	}
	if err := ask(cluster, c); err != nil {
		return err
	}
	if write {
		fmt.Printf("%s: %d steps\n", filepath.Base(c.path), len(c.steps))
		return c.write()
	}
	var failures []error
	for i, s := range c.steps {
		if !slices.Equal(before[i], s.answer) {
			failures = append(failures, fmt.Errorf("%s:%d: %q differs:\n%s", c.path, s.line, s.name,
				firstDifference(before[i], s.answer)))
		}
	}
	return errors.Join(failures...)
}

func firstDifference(old, new []string) string {
	for i := 0; i < max(len(old), len(new)); i++ {
		a, b := "(end)", "(end)"
		if i < len(old) {
			a = old[i]
		}
		if i < len(new) {
			b = new[i]
		}
		if a != b {
			return fmt.Sprintf("  line %d of the answer\n  - %s\n  + %s", i+1, a, b)
		}
	}
	return ""
}

func serve(servers string, args []string) error {
	profile := "default"
	if len(args) > 0 {
		profile = args[0]
	}
	cluster, err := startCluster(servers, profile)
	if err != nil {
		return err
	}
	defer cluster.stop()
	cert, key, err := cluster.authority.issue(users["admin"], clientUsage)
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(cluster.dir, "admin.crt"), cert, 0o600),
		os.WriteFile(filepath.Join(cluster.dir, "admin.key"), key, 0o600)); err != nil {
		return err
	}
	fmt.Printf("curl --cacert %[1]s/ca.crt --cert %[1]s/admin.crt --key %[1]s/admin.key https://%[2]s/\n",
		cluster.dir, cluster.host)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return nil
}
