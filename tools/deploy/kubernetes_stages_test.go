package deploy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// secretVariables returns the variables of both configurations whose value is a secret.
func secretVariables(t *testing.T) map[string]bool {
	t.Helper()
	secret := map[string]bool{}
	for _, page := range []string{reviewSettings, rewriteSettings} {
		known := settings(t, page)
		for name := range known {
			if variable, ok := strings.CutSuffix(name, "_FILE"); ok && known[variable] {
				secret[variable] = true
			}
		}
	}
	if len(secret) < 20 {
		t.Fatalf("the pages list only %d secrets", len(secret))
	}
	return secret
}

// sectionsOf returns the sections of the configuration that each stage needs, by the table
// of docs/configuration.md that a test of internal/config compares with the product.
func sectionsOf(t *testing.T) map[string][]string {
	t.Helper()
	sections := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| worker, stage `([a-z]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(read(t, reviewSettings)), -1) {
		sections[row[1]] = strings.Split(row[2], ", ")
	}
	return sections
}

// secretsOf returns the variables of the secrets that a stage may have: the database and those
// of its sections. The worker of the rewrite queue may have all of its page.
func secretsOf(t *testing.T, stage string) []string {
	t.Helper()
	page, needs := reviewSettings, append(sectionsOf(t)[stage], "database")
	if strings.HasPrefix(stage, "rewrite") {
		page = rewriteSettings
	}
	var allowed []string
	for _, field := range listedSetting.FindAllStringSubmatch(string(read(t, page)), -1) {
		name, is, variable := field[1], field[2], field[3]
		section, _, _ := strings.Cut(name, ".")
		if is == "secret" && (stage == "rewrite" || slices.Contains(needs, section) || slices.Contains(needs, name)) {
			allowed = append(allowed, variable)
		}
	}
	return allowed
}

// keysetsOf returns the keysets of a stage, by the table of docs/security.md. The rewrite queue
// has one of its own.
func keysetsOf(t *testing.T, stage string) (keysets []string) {
	t.Helper()
	if stage == "rewrite" {
		return []string{"COMPLAINT_REWRITE_KEYSET"}
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `criticizer_[a-z]+`: [^|]* \\|(.*?)\\|").FindAllStringSubmatch(string(read(t, root+"/docs/security.md")), -1)
	if len(rows) != 6 {
		t.Fatalf("docs/security.md lists %d stages", len(rows))
	}
	for _, row := range rows {
		if stage == "all" || row[1] == stage {
			keysets = append(keysets, regexp.MustCompile(`CRITICIZER_[A-Z]+_KEYSET`).FindAllString(row[2], -1)...)
		}
	}
	slices.Sort(keysets)
	return slices.Compact(keysets)
}

// Each stage has its keysets, no secret of another stage, and a Secret of its own with no key
// that it does not read.
func TestKubernetesSeparatesStages(t *testing.T) {
	t.Parallel()
	secret := secretVariables(t)
	owner := map[string]string{}
	for _, overlay := range overlays {
		o := build(t, overlay)
		for _, w := range o.workloads() {
			var keysets, read []string
			for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
				for _, e := range c.Env {
					variable, ok := strings.CutSuffix(e.Name, "_FILE")
					if !ok || !secret[variable] {
						continue
					}
					if path.Dir(e.Value) != mounted {
						t.Errorf("%s: %s of %s is %s", overlay, e.Name, w.name, e.Value)
					}
					read = append(read, path.Base(e.Value))
					if strings.HasSuffix(variable, "_KEYSET") {
						keysets = append(keysets, variable)
					}
					if w.stage != "all" && !slices.Contains(secretsOf(t, w.stage), variable) {
						t.Errorf("%s: %s has %s", overlay, w.name, e.Name)
					}
				}
			}
			if want := keysetsOf(t, w.stage); !sameElements(keysets, want) {
				t.Errorf("%s: %s has the keysets %v, want %v", overlay, w.name, keysets, want)
			}
			config := configOf(t, o, w)
			for _, file := range regexp.MustCompile(mounted+`/([a-z.-]+)`).FindAllStringSubmatch(config["temporal.toml"], -1) {
				if slices.ContainsFunc(w.main().Env, func(e corev1.EnvVar) bool { return e.Name == "TEMPORAL_CONFIG_FILE" }) {
					read = append(read, file[1])
				}
			}
			if slices.ContainsFunc(w.template.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == "known-host" }) {
				read = append(read, "p4trust")
			}
			name := volume(t, w, "secrets").Secret.SecretName
			if other := owner[overlay+name]; other != "" {
				t.Errorf("%s: %s and %s have the same secret", overlay, w.name, other)
			}
			owner[overlay+name] = w.name
			data := secretData(t, o, name)
			var keys []string
			for key := range data {
				keys = append(keys, key)
			}
			slices.Sort(read)
			if read = slices.Compact(read); !sameElements(keys, read) {
				t.Errorf("%s: %s reads %v, its secret has %v", overlay, w.name, read, keys)
			}
			for key, value := range data {
				want := "REPLACE " + key
				if overlay == "production" && (key == "database-url" || strings.HasPrefix(key, "temporal.")) {
					want = "REPLACE " + strings.TrimSuffix(key, path.Ext(key)) + "-" + w.stage + path.Ext(key)
				}
				if string(value) != want {
					t.Errorf("%s: %s has the %s of %q", overlay, w.name, key, value)
				}
			}
		}
		if len(o.secrets) != len(o.workloads()) || len(o.accounts) != len(o.workloads()) {
			t.Errorf("%s has %d secrets and %d accounts for %d workloads", overlay, len(o.secrets), len(o.accounts), len(o.workloads()))
		}
	}
}

func volume(t *testing.T, w workload, name string) corev1.Volume {
	t.Helper()
	i := slices.IndexFunc(w.template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("%s has no volume %s", w.name, name)
	}
	return w.template.Spec.Volumes[i]
}

func secretData(t *testing.T, o *objects, name string) map[string][]byte {
	t.Helper()
	for _, s := range o.secrets {
		if s.Name == name {
			return s.Data
		}
	}
	t.Fatalf("there is no secret %s", name)
	return nil
}

// configOf returns the files of the ConfigMap that a workload mounts.
func configOf(t *testing.T, o *objects, w workload) map[string]string {
	t.Helper()
	name := volume(t, w, "config").ConfigMap.Name
	for _, c := range o.configs {
		if c.Name == name {
			return c.Data
		}
	}
	t.Fatalf("%s: there is no ConfigMap %s", w.name, name)
	return nil
}
