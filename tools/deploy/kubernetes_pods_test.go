package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Every pod passes the level "restricted" of Kubernetes' own Pod Security admission, writes
// to its volumes only, has no token of the API, and is stopped by no kill.
func TestKubernetesPodsAreRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	grace := regexp.MustCompile("(?m)^\\| `worker.stop_grace` \\| [^|]* \\| `([0-9a-z]+)` \\|").FindStringSubmatch(string(read(t, root+"/docs/configuration.md")))
	if grace == nil {
		t.Fatal("docs/configuration.md lacks worker.stop_grace")
	}
	stop, err := time.ParseDuration(grace[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range overlays {
		o := build(t, overlay)
		for _, n := range o.namespaces {
			if n.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Errorf("%s: the namespace has the labels %v", overlay, n.Labels)
			}
		}
		if len(o.namespaces) != 1 {
			t.Errorf("%s has %d namespaces", overlay, len(o.namespaces))
		}
		for _, w := range o.workloads() {
			spec := w.template.Spec
			for _, result := range evaluator.EvaluatePod(podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}, &w.template.ObjectMeta, &spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", overlay, w.name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if s := spec.SecurityContext; s == nil || s.RunAsUser == nil || *s.RunAsUser != nobody || s.RunAsGroup == nil || *s.RunAsGroup != nobody || s.FSGroup == nil || *s.FSGroup != nobody {
				t.Errorf("%s: %s runs as %+v", overlay, w.name, s)
			}
			// The product refuses secrets that everybody can read.
			if source := volume(t, w, "secrets").Secret; source.DefaultMode == nil || *source.DefaultMode != 0o440 {
				t.Errorf("%s: the secrets of %s are %s", overlay, w.name, source)
			}
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s has a token of the API", overlay, w.name)
			}
			if !slices.ContainsFunc(o.accounts, func(a *corev1.ServiceAccount) bool {
				return a.Name == spec.ServiceAccountName && a.AutomountServiceAccountToken != nil && !*a.AutomountServiceAccountToken
			}) {
				t.Errorf("%s: the account of %s is %q", overlay, w.name, spec.ServiceAccountName)
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.RunAsUser != nil {
					t.Errorf("%s: %s of %s has %+v", overlay, c.Name, w.name, s)
				}
				if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s: %s of %s has the resources %+v", overlay, c.Name, w.name, c.Resources)
				}
			}
		}
		for _, d := range o.deployments {
			if got := d.Spec.Template.Spec.TerminationGracePeriodSeconds; got == nil || *got != int64(stop.Seconds())+5 {
				t.Errorf("%s: the grace period of %s is not %s and 5 seconds", overlay, d.Name, stop)
			}
		}
	}
}

// The probes use the worker's port, every volume is mounted and every mounted volume is
// defined, every file that is read is mounted, and the stages that run p4 have its state.
func TestKubernetesPlacesAgree(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		o := build(t, overlay)
		for _, w := range o.workloads() {
			volumes, used := map[string]bool{}, map[string]bool{}
			for _, v := range w.template.Spec.Volumes {
				volumes[v.Name] = true
			}
			for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
				for _, m := range c.VolumeMounts {
					if used[m.Name] = true; !volumes[m.Name] {
						t.Errorf("%s: %s of %s mounts %s, which is no volume", overlay, c.Name, w.name, m.Name)
					}
					if writable := m.Name == "tmp" || m.Name == "state"; m.ReadOnly == writable {
						t.Errorf("%s: %s of %s mounts %s, read-only: %t", overlay, c.Name, w.name, m.Name, m.ReadOnly)
					}
				}
				for _, e := range c.Env {
					if !strings.HasSuffix(e.Name, "_FILE") {
						continue
					}
					_, inConfig := configOf(t, o, w)[path.Base(e.Value)]
					_, inSecret := secretData(t, o, volume(t, w, "secrets").Secret.SecretName)[path.Base(e.Value)]
					if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
						return m.MountPath == path.Dir(e.Value) && (m.Name == "config" && inConfig || m.Name == "secrets" && inSecret)
					}) {
						t.Errorf("%s: %s of %s names %s, which is not mounted", overlay, e.Name, w.name, e.Value)
					}
				}
			}
			for name := range volumes {
				if !used[name] {
					t.Errorf("%s: nothing mounts the volume %s of %s", overlay, name, w.name)
				}
			}
			if p4 := w.stage == "fetch" || w.stage == "all"; volumes["state"] != p4 || (len(w.template.Spec.InitContainers) > 0) != p4 {
				t.Errorf("%s: %s has the volumes %v", overlay, w.name, volumes)
			}
			// It is where Criticizer looks without a flag.
			if _, ok := configOf(t, o, w)["criticizer.yaml"]; !ok || !slices.ContainsFunc(w.main().VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == "config" && m.MountPath == "/etc/criticizer" && m.SubPath == ""
			}) {
				t.Errorf("%s: %s does not mount its configuration", overlay, w.name)
			}
		}
		for _, d := range o.deployments {
			c := d.Spec.Template.Spec.Containers[0]
			listens := ""
			for _, e := range c.Env {
				if e.Name == "CRITICIZER_WORKER_LISTEN" {
					listens = e.Value
				}
			}
			if port := c.Ports[0]; listens != fmt.Sprintf(":%d", port.ContainerPort) ||
				c.LivenessProbe.HTTPGet.Port.StrVal != port.Name || c.LivenessProbe.HTTPGet.Path != "/healthz" ||
				c.ReadinessProbe.HTTPGet.Port.StrVal != port.Name || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.ReadinessProbe.TimeoutSeconds < 10 {
				t.Errorf("%s: the worker of %s listens at %q, its port is %+v", overlay, d.Name, listens, port)
			}
		}
	}
}

// The step before stage fetch puts the fingerprint where p4 reads it, in a directory that the
// product accepts: no other user can enter it.
func TestKnownHostIsPlaced(t *testing.T) {
	t.Parallel()
	n := 0
	for _, overlay := range overlays {
		for _, w := range build(t, overlay).workloads() {
			for _, c := range w.template.Spec.InitContainers {
				if c.Name != "known-host" {
					continue
				}
				n++
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "p4trust"), []byte("10.0.0.1:1666=**++**:AA"), 0o440); err != nil {
					t.Fatal(err)
				}
				script := strings.NewReplacer(mounted, dir, "/var/lib/criticizer", dir+"/state").Replace(c.Args[0])
				if !slices.Equal(c.Command, []string{"/bin/sh", "-euc"}) {
					t.Errorf("%s: it runs %v", overlay, c.Command)
				}
				if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				state := filepath.Join(dir, "state/p4")
				if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%s: the directory is %v, %v", overlay, info, err)
				}
				if got := string(read(t, filepath.Join(state, "p4trust"))); got != "10.0.0.1:1666=**++**:AA" {
					t.Errorf("%s: the fingerprint is %q", overlay, got)
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d overlays have the step, want production and trial", n)
	}
}
