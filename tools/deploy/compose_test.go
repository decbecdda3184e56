package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

// ours are the services that run the image.
var ours = append([]string{"starter", "criticizer", "migrate"}, workerStages...)

var workerStages = []string{"workflows", "fetch", "redact", "llm", "notify", "retention"}

var variable = regexp.MustCompile("`([A-Z][A-Z0-9_]+)`")

// settings returns the variables of the configuration that docs/configuration.md
// lists, with those that name the file of a secret.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{"CRITICIZER_CONFIG": true}
	for line := range strings.Lines(string(read(t, root+"/docs/configuration.md"))) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		for _, found := range variable.FindAllStringSubmatch(cells[2], -1) {
			known[found[1]] = true
			if strings.TrimSpace(cells[3]) == "secret" {
				known[found[1]+"_FILE"] = true
			}
		}
	}
	if len(known) < 50 {
		t.Fatalf("docs/configuration.md lists only %d variables", len(known))
	}
	return known
}

// A misspelled variable causes no error at run time.
func TestVariablesOfDeploymentsAreRead(t *testing.T) {
	known := settings(t)
	for file, p := range projects(t) {
		for _, name := range ours {
			for v := range p.Services[name].Environment {
				if !known[v] && v != "SSL_CERT_DIR" { // Go reads it
					t.Errorf("%s: %s has %s, which is no variable of the configuration", file, name, v)
				}
			}
		}
	}
	for _, overlay := range overlays {
		for _, w := range build(t, overlay).workloads() {
			for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
				for _, e := range c.Env {
					if !known[e.Name] {
						t.Errorf("%s: %s of %s has %s, which is no variable of the configuration", overlay, c.Name, w.name, e.Name)
					}
				}
			}
		}
	}
}

// env.example and the compose files have the same variables.
func TestExampleOfTheEnvironmentIsComplete(t *testing.T) {
	asked := map[string]bool{"COMPOSE_FILE": true}
	for _, file := range []string{"/docker-compose.yml", "/production.yml"} {
		for _, found := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(string(read(t, root+file)), -1) {
			asked[found[1]] = true
		}
	}
	offered := map[string]bool{}
	for line := range strings.Lines(string(read(t, docs+"/env.example"))) {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			offered[name] = true
		}
	}
	if !maps.Equal(asked, offered) {
		t.Errorf("the compose files use %v, env.example has %v", slices.Sorted(maps.Keys(asked)), slices.Sorted(maps.Keys(offered)))
	}
}

// docker compose up --wait reaches its end, and nothing starts before what it needs. A
// service may depend on the health of another only if that has a health check. A service
// that ends has another one wait for its success: compose takes its end for a failure
// otherwise. No service shares the network of another, which a restart would cut off.
func TestComposeWaits(t *testing.T) {
	for file, p := range projects(t) {
		awaited := map[string]bool{}
		for _, s := range p.Services {
			for other, how := range s.DependsOn {
				check := p.Services[other].HealthCheck
				if how.Condition == types.ServiceConditionHealthy && (check == nil || check.Disable || len(check.Test) == 0) {
					t.Errorf("%s: %s waits for the health of %s, which is not checked", file, s.Name, other)
				}
				awaited[other] = awaited[other] || how.Condition == types.ServiceConditionCompletedSuccessfully
			}
			if strings.HasPrefix(s.NetworkMode, "service:") {
				t.Errorf("%s: %s has the network of another service", file, s.Name)
			}
		}
		for _, s := range p.Services {
			if ends := s.Restart == "no"; ends != awaited[s.Name] {
				t.Errorf("%s: %s ends: %t, another service waits for its success: %t", file, s.Name, ends, awaited[s.Name])
			}
		}
		for name, needs := range map[string][]string{
			"secrets": {"keys"}, "postgres": {"secrets"}, "logins": {"postgres"}, "temporal": {"logins"}, "migrate": {"logins"},
			"criticizer": {"postgres"}, "starter": {"workflows"},
		} {
			if got := p.Services[name].GetDependencies(); !slices.Equal(got, needs) {
				t.Errorf("%s: %s waits for %v, want %v", file, name, got, needs)
			}
		}
		for _, name := range workerStages {
			s := p.Services[name]
			if _, ok := s.DependsOn["temporal"]; !ok || s.DependsOn["migrate"].Condition != types.ServiceConditionCompletedSuccessfully || time.Duration(*s.HealthCheck.Interval) > 5*time.Second {
				t.Errorf("%s: %s waits for %v and is checked every %s", file, name, s.GetDependencies(), s.HealthCheck.Interval)
			}
		}
		if _, ok := p.Services["fetch"].DependsOn["allowlist"]; ok != (file == "docker-compose.yml") {
			t.Errorf("%s: fetch waits for an applied allow list: %t", file, ok)
		}
		if test := strings.Join(p.Services["postgres"].HealthCheck.Test, " "); !strings.Contains(test, "-h 127.0.0.1") {
			t.Errorf("%s: the health of postgres is %s, which a server under initialization passes", file, test)
		}
		if test := strings.Join(p.Services["temporal"].HealthCheck.Test, " "); !strings.Contains(test, "--namespace "+*p.Services["temporal"].Environment["DEFAULT_NAMESPACE"]) {
			t.Errorf("%s: the health of temporal is %s, which a server without the namespace passes", file, test)
		}
	}
}

// The addresses and paths in the files agree.
func TestComposePlacesAgree(t *testing.T) {
	for file, p := range projects(t) {
		var cfg struct {
			Temporal struct{ Address string }
			Mail     struct{ Host, TLS string }
			Worker   struct{ Listen string }
			LLM      struct {
				BaseURL string `json:"base_url"`
			}
			P4 struct{ Command string }
		}
		name := p.Configs["criticizer"].File
		if file == "production.yml" { // README: copy it
			name = docs + "/" + path.Base(name)
		}
		if err := yaml.Unmarshal(read(t, name), &cfg); err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(cfg.Temporal.Address)
		if err != nil || p.Services[host].Name == "" || port != "7233" {
			t.Errorf("%s: the address of Temporal is %s", file, cfg.Temporal.Address)
		}
		// The health check uses worker.listen.
		if _, _, err := net.SplitHostPort(cfg.Worker.Listen); err != nil {
			t.Errorf("%s: the address of the health check is %q", file, cfg.Worker.Listen)
		}
		if cfg.Mail.TLS != "" { // mandatory
			t.Errorf("%s: mail has TLS %q", file, cfg.Mail.TLS)
		}
		if file == "docker-compose.yml" && (p.Services[cfg.Mail.Host].Name == "" || cfg.LLM.BaseURL != "http://standin:8026/v1") {
			t.Errorf("%s: mail goes to %s, the model is %s", file, cfg.Mail.Host, cfg.LLM.BaseURL)
		}
		if cfg.P4.Command != "/usr/local/bin/p4" {
			t.Errorf("%s: the p4 command is %s", file, cfg.P4.Command)
		}
		for _, name := range ours {
			s := p.Services[name]
			if !slices.ContainsFunc(s.Configs, func(c types.ServiceConfigObjConfig) bool { return c.Target == *s.Environment["CRITICIZER_CONFIG"] }) {
				t.Errorf("%s: %s does not mount its configuration", file, name)
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
			if slices.Contains(workerStages, name) && !slices.Equal(s.Command, []string{"--stages", name}) {
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

// The services that the pages name exist. TestDocumentedCommands of package e2e checks the
// commands for them, make composetest runs them.
func TestDocumentedServicesExist(t *testing.T) {
	p := projects(t)["docker-compose.yml"]
	n := 0
	for _, page := range []string{root + "/README.md", docs + "/README.md"} {
		for _, found := range regexp.MustCompile(`docker compose (?:run --rm|exec|logs|restart) (?:--?[^ ]+ (?:[^ ]+=[^ ]+ |p4 )?)*([a-z0-9-]+)`).FindAllStringSubmatch(string(read(t, page)), -1) {
			if n++; p.Services[found[1]].Name == "" {
				t.Errorf("%s: %s: there is no service %s", page, found[0], found[1])
			}
		}
	}
	if n < 5 {
		t.Errorf("%d commands were found: this test does not read the pages", n)
	}
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
