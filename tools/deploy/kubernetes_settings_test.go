package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each container's program accepts its settings and secrets, and refuses to start without any
// of the secrets: it has what it needs, and no more. The program ends at an address where no
// server is.
func TestKubernetesSettingsAreAccepted(t *testing.T) {
	bin := t.TempDir()
	for command, folder := range map[string]string{"criticizer-worker": "./worker", "criticizer": "./criticizer", "complaint-rewrite": "./rewrite/cmd/complaint-rewrite"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, command), folder)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", command, err, out)
		}
	}
	// Servers without authentication need neither.
	secret := secretVariables(t)
	optional := []string{"CRITICIZER_P4_TICKET_FILE", "COMPLAINT_REWRITE_OPENAI_API_KEY_FILE"}
	for _, overlay := range overlays {
		o := build(t, overlay)
		for _, w := range o.workloads() {
			for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
				if c.Name == "known-host" {
					continue
				}
				t.Run(overlay+" "+w.stage+" "+c.Name, func(t *testing.T) {
					dir := place(t, bin, configOf(t, o, w), secretData(t, o, volume(t, w, "secrets").Secret.SecretName))
					env := []string{"CRITICIZER_CONFIG=" + dir + "/criticizer.yaml"}
					for _, e := range c.Env {
						env = append(env, e.Name+"="+strings.NewReplacer(mounted, dir, "/etc/criticizer", dir, ":9464", "127.0.0.1:0").Replace(e.Value))
					}
					command := slices.Concat(c.Command, c.Args)
					if len(c.Command) == 0 {
						command = slices.Concat([]string{"/criticizer-worker"}, c.Args) // the image's
					}
					run := func(env []string) string {
						cmd := exec.CommandContext(t.Context(), bin+command[0], command[1:]...)
						cmd.Env = env
						out, err := cmd.CombinedOutput()
						if err == nil {
							t.Errorf("%v succeeded without a server: %s", command, out)
						}
						return string(out)
					}
					if out := run(env); strings.Contains(out, "configuration") || !strings.Contains(out, "127.0.0.1:1") && !strings.Contains(out, "Postgres is unreachable") {
						t.Errorf("%v with %v: %s", command, env, out)
					}
					for i, e := range env {
						name, _, _ := strings.Cut(e, "=")
						variable, ok := strings.CutSuffix(name, "_FILE")
						if !ok || !secret[variable] || slices.Contains(optional, name) {
							continue
						}
						if out := run(slices.Delete(slices.Clone(env), i, i+1)); !strings.Contains(out, "check configuration:\n"+variable+": is not set") {
							t.Errorf("%v without %s: %s", command, name, out)
						}
					}
				})
			}
		}
	}
}

// place writes the files of a pod into a directory: its configuration with other places and
// addresses, and for each key of its secret a valid one.
func place(t *testing.T, bin string, config map[string]string, secret map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "criticizer"), "keyset", "create", keys).CombinedOutput(); err != nil {
		t.Fatalf("create keysets: %v\n%s", err, out)
	}
	keyset, err := exec.CommandContext(t.Context(), filepath.Join(bin, "complaint-rewrite"), "keyset").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(keys, "rewrite-keyset"), keyset, 0o600); err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer(mounted, dir, "temporal-frontend.temporal:7233", "127.0.0.1:1")
	for name, text := range config {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(moved.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, key := selfSigned(t)
	for name := range secret {
		text := []byte("REPLACE")
		switch path.Ext(name) {
		case ".pem":
			text = certificate
		case ".key":
			text = key
		}
		if name == "database-url" {
			text = []byte("postgres://someone:REPLACE@127.0.0.1:1/criticizer?sslmode=verify-full")
		}
		if made, err := os.ReadFile(filepath.Join(keys, name)); err == nil {
			text = made
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o440); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
