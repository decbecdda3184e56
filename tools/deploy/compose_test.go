package deploy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ours are the services that run the image.
var ours = append([]string{"starter", "criticizer", "migrate"}, workerStages...)

var workerStages = []string{"workflows", "fetch", "redact", "llm", "notify", "retention"}

// The pages that list the variables of the reviews and of the rewrite queue.
const (
	reviewSettings  = root + "/docs/configuration.md"
	rewriteSettings = root + "/rewrite/docs/configuration.md"
)

// A listedSetting is a field in a list of settings: its name, and its default, or what it is
// and its variable.
var listedSetting = regexp.MustCompile("(?m)^- `([a-z0-9_.]+)`(?: \\((secret|variable)? ?`([^`]*)`\\))?")

// settings returns the variables of the configuration that a page lists, with those that
// name the file of a secret.
func settings(t *testing.T, page string) map[string]bool {
	t.Helper()
	prefix := map[string]string{reviewSettings: "CRITICIZER_", rewriteSettings: "COMPLAINT_REWRITE_"}[page]
	known := map[string]bool{prefix + "CONFIG": true, "TEMPORAL_CONFIG_FILE": true, "TEMPORAL_PROFILE": true}
	for _, field := range listedSetting.FindAllStringSubmatch(string(read(t, page)), -1) {
		switch name, is, variable := field[1], field[2], field[3]; is {
		case "secret":
			known[variable], known[variable+"_FILE"] = true, true
		case "variable":
			known[variable] = true
		default:
			known[prefix+strings.ToUpper(strings.ReplaceAll(name, ".", "_"))] = true
		}
	}
	if len(known) < 30 {
		t.Fatalf("%s lists only %d variables", page, len(known))
	}
	return known
}

// A misspelled variable causes no error at run time.
func TestVariablesOfDeploymentsAreRead(t *testing.T) {
	known := settings(t, reviewSettings)
	for file, p := range projects(t) {
		for _, name := range ours {
			for v := range p.Services[name].Environment {
				if !known[v] && v != "SSL_CERT_DIR" { // Go reads it
					t.Errorf("%s: %s has %s, which is not a variable of the configuration", file, name, v)
				}
			}
		}
	}
	for _, overlay := range overlays {
		for _, w := range build(t, overlay).workloads() {
			known := known
			if strings.HasPrefix(w.stage, "rewrite") {
				known = settings(t, rewriteSettings)
			}
			for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
				for _, e := range c.Env {
					if !known[e.Name] {
						t.Errorf("%s: %s of %s has %s, which is not a variable of the configuration", overlay, c.Name, w.name, e.Name)
					}
				}
			}
		}
	}
}

var imageVersion = regexp.MustCompile(`:(v?[0-9]+\.[0-9.]+|sample)$`)

// Each stage has a login with its role and no other, and only the keys that it needs; no
// other service has them. Images have a version.
func TestComposeSeparatesStages(t *testing.T) {
	keys := map[string][]string{
		"fetch": {"raw-keyset"}, "redact": {"raw-keyset", "redacted-keyset", "redaction-key"},
		"llm": {"redacted-keyset", "report-keyset", "answers-keyset", "redaction-key"}, "notify": {"report-keyset", "evidence-key"},
	}
	roles := map[string]string{"workflows": "bookkeeping", "criticizer": "operator"}
	given := string(read(t, docs+"/secrets.sh"))
	logins := string(read(t, docs+"/logins.sh"))
	for file, p := range projects(t) {
		for name, s := range p.Services {
			if !imageVersion.MatchString(s.Image) {
				t.Errorf("%s: the image of %s has no version: %s", file, name, s.Image)
			}
			var secrets []string // volumes
			for _, v := range s.Volumes {
				if v.Source == "keys" || strings.HasPrefix(v.Source, "secrets-") {
					secrets = append(secrets, v.Source)
				}
				if v.Target == "/run/secrets" && !v.ReadOnly {
					t.Errorf("%s: %s can write %s", file, name, v.Source)
				}
			}
			want := map[string][]string{"keys": {"keys"}, "logins": {"secrets-postgres"}, "allowlist": {"secrets-criticizer"}, "ui": nil, "standin": nil, "starter": nil}
			if own, ok := want[name]; name != "secrets" && (ok && !slices.Equal(secrets, own) || !ok && !slices.Equal(secrets, []string{"secrets-" + name})) {
				t.Errorf("%s: %s has the secrets %v", file, name, secrets)
			}
			if slices.Contains(workerStages, name) && !slices.Equal(s.Command, []string{"--roles", name}) {
				t.Errorf("%s: %s runs %v", file, name, s.Command)
			}
			var read []string
			for variable, value := range s.Environment {
				if key, ok := strings.CutPrefix(*value, "/run/secrets/"); ok && key != "database-url" && strings.HasPrefix(variable, "CRITICIZER_") {
					read = append(read, key)
				}
			}
			if !sameElements(read, keys[name]) {
				t.Errorf("%s: %s reads %v, want %v", file, name, read, keys[name])
			}
		}
	}
	for _, name := range append([]string{"criticizer"}, workerStages...) {
		login := "worker_" + strings.Replace(name, "criticizer", "operator", 1)
		if line := strings.Join(append([]string{"\nours", name, login}, keys[name]...), " ") + "\n"; !strings.Contains(given, line) {
			t.Errorf("secrets.sh lacks %q", line)
		}
		if line := fmt.Sprintf("\nlogin %s criticizer_%s\n", login, cmp.Or(roles[name], name)); !strings.Contains(logins, line) {
			t.Errorf("logins.sh lacks %q", line)
		}
	}
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
