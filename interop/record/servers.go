package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// profile is one set-up of the real API server (@server in a case).
var profiles = map[string][]string{
	"default": nil,
	// Everything that --runtime-config can switch on; for facts only.
	"all": {"--runtime-config=api/all=true"},
	// What src/lab/testdata/fake-gpu-cluster.yaml asks of kind.
	"kind": {
		"--feature-gates=DRADeviceTaintRules=true,DRAListTypeAttributes=true," +
			"DRAWorkloadResourceClaims=true,DRANodeAllocatableResources=true,GangScheduling=true," +
			"GenericWorkload=true",
		"--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true," +
			"scheduling.k8s.io/v1alpha2=true",
	},
}

// users of the cases: name and groups in a client certificate (docs/recorded-cases.md, section 3).
var users = map[string]pkix.Name{
	"admin":       {CommonName: "kubernetes-super-admin", Organization: []string{"system:masters"}},
	"weak":        {CommonName: "weak"},
	"viewer":      {CommonName: "viewer", Organization: []string{"viewers"}},
	"node":        {CommonName: "system:node:case-node", Organization: []string{"system:nodes"}},
	"scheduler":   {CommonName: "system:kube-scheduler"},
	"controllers": {CommonName: "system:kube-controller-manager"},
}

const (
	// Not loopback: the endpoints of Service kubernetes may not hold a loopback address.
	advertised   = "192.0.2.10"
	startTimeout = 3 * time.Minute
	clientUsage  = x509.ExtKeyUsageClientAuth
)

// cluster is a running etcd and kube-apiserver on loopback, with state in a directory that goes with it.
type cluster struct {
	dir, host string
	authority *authority
	clients   map[string]*http.Client
	processes []*exec.Cmd
}

func startCluster(servers, profile string) (*cluster, error) {
	extra, ok := profiles[profile]
	if !ok {
		return nil, fmt.Errorf("no server profile %q", profile)
	}
	dir, err := os.MkdirTemp("", "interop-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, clients: map[string]*http.Client{}}
	if err := c.start(servers, extra); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *cluster) start(servers string, extra []string) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.host = fmt.Sprintf("127.0.0.1:%d", ports[0])
	if c.authority, err = newAuthority(c.dir); err != nil {
		return err
	}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	peer := fmt.Sprintf("http://127.0.0.1:%d", ports[2])
	if err := c.launch(servers, "etcd", "--name=only", "--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=only="+peer, "--unsafe-no-fsync",
		"--log-level=error"); err != nil {
		return err
	}
	args := append([]string{"kube-apiserver"}, c.apiserverFlags(ports[0], etcd)...)
	if err := c.launch(servers, append(args, extra...)...); err != nil {
		return err
	}
	return c.waitReady()
}

// apiserverFlags are kubeadm's, less those that name nodes, the front proxy and files of its own.
func (c *cluster) apiserverFlags(port int, etcd string) []string {
	in := func(name string) string { return filepath.Join(c.dir, name) }
	return []string{
		"--advertise-address=" + advertised,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=" + in("ca.crt"),
		"--tls-cert-file=" + in("server.crt"),
		"--tls-private-key-file=" + in("server.key"),
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--etcd-servers=" + etcd,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + in("sa.key"),
		"--service-account-signing-key-file=" + in("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
	}
}

func (c *cluster) launch(program string, args ...string) error {
	log, err := os.Create(filepath.Join(c.dir, args[0]+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, cmd)
	return nil
}

// waitReady returns when the server is ready and has made its four namespaces and Service kubernetes.
func (c *cluster) waitReady() error {
	wanted := []string{
		"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system",
		"/api/v1/namespaces/kube-public", "/api/v1/namespaces/kube-node-lease",
		"/api/v1/namespaces/default/services/kubernetes",
		"/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:basic-user",
	}
	deadline := time.Now().Add(startTimeout)
	for _, path := range wanted {
		for {
			err := c.probe(path)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("server not ready: %s: %w (logs in %s)", path, err, c.dir)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

func (c *cluster) probe(path string) error {
	client, err := c.client("admin")
	if err != nil {
		return err
	}
	resp, err := client.Get("https://" + c.host + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// client speaks as one of the users.
func (c *cluster) client(user string) (*http.Client, error) {
	if client, ok := c.clients[user]; ok {
		return client, nil
	}
	config := &tls.Config{RootCAs: c.authority.pool}
	if user != "anonymous" {
		name, ok := users[user]
		if !ok {
			return nil, fmt.Errorf("no user %q", user)
		}
		cert, key, err := c.authority.issue(name, clientUsage)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.clients[user] = client
	return client, nil
}

// names are the host:port texts by which answers may call this server.
func (c *cluster) names() []string {
	_, port, _ := strings.Cut(c.host, ":")
	return []string{c.host, advertised + ":" + port}
}

func (c *cluster) stop() {
	for i := len(c.processes) - 1; i >= 0; i-- {
		p := c.processes[i]
		_ = p.Process.Signal(syscall.SIGKILL)
		_ = p.Wait()
	}
	if os.Getenv("INTEROP_KEEP") == "" {
		_ = os.RemoveAll(c.dir)
	} else {
		fmt.Fprintln(os.Stderr, "kept", c.dir)
	}
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// authority signs the server's and the users' certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pool.AddCert(a.cert)
	cert, certKey, err := a.issue(pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	signing, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return a, errors.Join(
		os.WriteFile(filepath.Join(dir, "ca.crt"), pemBlock("CERTIFICATE", der), 0o600),
		os.WriteFile(filepath.Join(dir, "server.crt"), cert, 0o600),
		os.WriteFile(filepath.Join(dir, "server.key"), certKey, 0o600),
		os.WriteFile(filepath.Join(dir, "sa.key"),
			pemBlock("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(signing)), 0o600),
	)
}

func (a *authority) issue(name pkix.Name, usage x509.ExtKeyUsage) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: name, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"kubernetes.default.svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalECPrivateKey(private)
	return pemBlock("CERTIFICATE", der), pemBlock("EC PRIVATE KEY", raw), err
}

func pemBlock(kind string, der []byte) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}) // A buffer takes everything.
	return b.Bytes()
}

// withTimeout bounds one exchange with the server.
func withTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
