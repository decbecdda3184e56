package deploy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// TestManifestsOnAnAPIServer applies each overlay to the API server of Kubernetes, as
// `kubectl apply --server-side` does, and lets it admit a pod of each template. It must not
// even warn. No controllers and no nodes run, so no container starts, and KEDA is not
// installed.
func TestManifestsOnAnAPIServer(t *testing.T) {
	s := startAPIServer(t)
	for _, overlay := range overlays {
		o := build(t, overlay)
		namespacesFirst := func(a, b string) int {
			return -cmp.Compare(strings.Count(a, "kind: Namespace\n"), strings.Count(b, "kind: Namespace\n"))
		}
		for _, document := range slices.SortedStableFunc(slices.Values(o.documents), namespacesFirst) {
			if err := s.apply(t, document); err != nil && !(meta.IsNoMatchError(err) && strings.Contains(document, "kind: ScaledObject\n")) {
				t.Errorf("%s: %v\n%s", overlay, err, document)
			}
		}
		for _, w := range o.workloads() {
			if err := s.admit(t, w.template); err != nil {
				t.Errorf("%s: pod of %s: %v", overlay, w.name, err)
			}
		}
	}
	if len(s.warnings.texts) > 0 {
		t.Errorf("the server warns:\n%s", strings.Join(s.warnings.texts, "\n"))
	}

	o := build(t, "production")
	for name, broken := range map[string]string{
		"an unknown field":     strings.Replace(documentWith(t, o.documents, "kind: PodDisruptionBudget"), "\nspec:\n", "\nspec:\n  unknown: 1\n", 1),
		"a port out of bounds": strings.Replace(documentWith(t, o.documents, "kind: NetworkPolicy"), "port: 5432", "port: 543200", 1),
	} {
		if err := s.apply(t, broken); err == nil {
			t.Errorf("%s is accepted:\n%s", name, broken)
		}
	}
	root := o.workloads()[0].template
	root.Spec.Containers[0].SecurityContext.RunAsNonRoot = nil
	root.Spec.SecurityContext.RunAsNonRoot = nil
	if err := s.admit(t, root); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a pod that may run as root: %v", err)
	}
}

func documentWith(t *testing.T, documents []string, part string) string {
	t.Helper()
	for _, document := range documents {
		if strings.Contains(document, part) {
			return document
		}
	}
	t.Fatalf("no object has %q", part)
	return ""
}

// An apiServer is a real API server with an etcd of its own.
type apiServer struct {
	objects  *dynamic.DynamicClient
	pods     *kubernetes.Clientset
	mapper   meta.RESTMapper
	warnings *warnings
}

// warnings collects what the server warns of.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.texts = append(w.texts, text)
}

// apply sends an object as kubectl apply --server-side does.
func (s *apiServer) apply(t *testing.T, document string) error {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	_, err = s.objects.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(t.Context(), object.GetName(), types.ApplyPatchType,
		[]byte(document), metav1.PatchOptions{FieldManager: "test", Force: new(true), FieldValidation: metav1.FieldValidationStrict})
	return err
}

// admit asks the server to create a pod of a template, and to keep nothing of it.
func (s *apiServer) admit(t *testing.T, template corev1.PodTemplateSpec) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName = "test-"
	_, err := s.pods.CoreV1().Pods("criticizer").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	binary := os.Getenv("CRITICIZER_TEST_APISERVER")
	if binary == "" {
		t.Skip("SKIPPED: CRITICIZER_TEST_APISERVER names no API server; make kubernetestest builds one")
	}
	dir, token := t.TempDir(), rand.Text()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"accounts.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		"tokens.csv":   fmt.Appendf(nil, "%s,test,test,system:masters\n", token),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	etcd, peer, port := freePort(t), freePort(t), freePort(t)
	start(t, "etcd", "--data-dir", dir+"/etcd", "--listen-client-urls", "http://"+etcd, "--advertise-client-urls", "http://"+etcd,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer)
	_, number, _ := net.SplitHostPort(port)
	start(t, binary, "--etcd-servers", "http://"+etcd, "--bind-address", "127.0.0.1", "--secure-port", number, "--cert-dir", dir+"/certificates",
		"--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC", "--token-auth-file", dir+"/tokens.csv",
		"--service-account-issuer", "https://criticizer.test", "--service-account-signing-key-file", dir+"/accounts.key",
		"--service-account-key-file", dir+"/accounts.key", "--disable-admission-plugins", "ServiceAccount")

	s := &apiServer{warnings: &warnings{}}
	config := &rest.Config{Host: "https://" + port, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, WarningHandler: s.warnings}
	found := discovery.NewDiscoveryClientForConfigOrDie(config)
	s.objects, s.pods = dynamic.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if _, err = found.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the API server is not ready: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	groups, err := restmapper.GetAPIGroupResources(found)
	if err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return s
}

// start runs a program until the end of the test, and shows its output if the test fails.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v (Debian package etcd-server)", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the context of the test has ended and killed it
		if t.Failed() {
			text := out.String()
			t.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-4000):])
		}
	})
}

// freePort returns an address of this machine that no program listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
