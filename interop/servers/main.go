// Command servers is the real etcd and the real kube-apiserver in one program, unchanged:
//
//	servers etcd ARGS...
//	servers kube-apiserver ARGS...
//	servers describe                 prints the API server's feature gates and API versions as JSON
//
// It is built once (see interop/README.md) and is the oracle of the recorded cases. It is a program
// of its own because linking the API server takes most of a minute; the recorder links in a second.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // CronJob time zones are validated against the embedded database, as upstream.

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: servers etcd|kube-apiserver|describe ARGS...")
		os.Exit(2)
	}
	word := os.Args[1]
	args := append([]string{word}, os.Args[2:]...)
	switch word {
	case "etcd":
		etcdmain.Main(args)
	case "kube-apiserver":
		os.Args = args
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	case "describe":
		if err := describe(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "servers:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "servers: unknown server %q\n", word)
		os.Exit(2)
	}
}
