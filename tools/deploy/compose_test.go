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

	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
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
	p := project(t)
	for _, name := range ours {
		for v := range p.Services[name].Environment {
			if !known[v] {
				t.Errorf("docker-compose.yml: %s has %s, which is no variable of the configuration", name, v)
			}
		}
	}
	for _, e := range deployment(t).Spec.Template.Spec.Containers[0].Env {
		if !known[e.Name] {
			t.Errorf("kubernetes.yaml: the worker has %s, which is no variable of the configuration", e.Name)
		}
	}
}

// env.example and docker-compose.yml have the same variables.
func TestExampleOfTheEnvironmentIsComplete(t *testing.T) {
	asked := map[string]bool{}
	for _, found := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(string(read(t, root+"/docker-compose.yml")), -1) {
		asked[found[1]] = true
	}
	offered := map[string]bool{}
	for line := range strings.Lines(string(read(t, docs+"/env.example"))) {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			offered[name] = true
		}
	}
	if !maps.Equal(asked, offered) {
		t.Errorf("docker-compose.yml uses %v, env.example has %v", slices.Sorted(maps.Keys(asked)), slices.Sorted(maps.Keys(offered)))
	}
}

// A service may depend on the health of another only if that has a health check.
func TestComposeWaitsForWhatIsChecked(t *testing.T) {
	p := project(t)
	for _, name := range p.ServiceNames() {
		for other, how := range p.Services[name].DependsOn {
			check := p.Services[other].HealthCheck
			if how.Condition == types.ServiceConditionHealthy && (check == nil || check.Disable || len(check.Test) == 0) {
				t.Errorf("%s waits for the health of %s, which is not checked", name, other)
			}
		}
	}
}

// The addresses and paths in the files agree.
func TestComposePlacesAgree(t *testing.T) {
	p := project(t)
	var cfg struct {
		Temporal struct{ Address string }
		Mail     struct {
			Host string
			Port int
		}
		Worker struct{ Listen string }
		P4     struct{ Command string }
	}
	if err := yaml.Unmarshal(read(t, docs+"/criticizer.yaml"), &cfg); err != nil {
		t.Fatal(err)
	}
	worker := p.Services["notify"]
	host, port, err := net.SplitHostPort(cfg.Temporal.Address)
	if err != nil || p.Services[host].Name == "" || port != "7233" {
		t.Errorf("the address of Temporal is %s", cfg.Temporal.Address)
	}
	// The health check uses worker.listen. Mailpit listens for mail on port 1025.
	if _, _, err := net.SplitHostPort(cfg.Worker.Listen); err != nil || worker.HealthCheck != nil && worker.HealthCheck.Disable {
		t.Errorf("the health check of the worker is off, or its address %q is invalid", cfg.Worker.Listen)
	}
	if worker.NetworkMode != "service:mailpit" || cfg.Mail.Host != "127.0.0.1" || cfg.Mail.Port != 1025 {
		t.Errorf("mail goes to %s:%d in the network %s", cfg.Mail.Host, cfg.Mail.Port, worker.NetworkMode)
	}
	if cfg.P4.Command != "/usr/local/bin/p4" {
		t.Errorf("the p4 command is %s", cfg.P4.Command)
	}
	for _, name := range ours {
		s := p.Services[name]
		for v, value := range s.Environment {
			secret, ok := strings.CutPrefix(*value, "/run/secrets/")
			if ok && !slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool { return c.Source == secret }) {
				t.Errorf("%s reads %s from a secret that it does not have", name, v)
			}
		}
		if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Target == path.Dir(*s.Environment["CRITICIZER_CONFIG"])+"/criticizer.yaml"
		}) {
			t.Errorf("%s does not mount its configuration", name)
		}
	}
}

var (
	databaseLogin = regexp.MustCompile(`^postgres://(\w+):`)
	imageVersion  = regexp.MustCompile(`:v?[0-9]+\.[0-9]`)
)

// Each stage has a login with its role and no other, and only the keys that it needs; no
// other service has them. Images have a version.
func TestComposeSeparatesStages(t *testing.T) {
	p := project(t)
	logins := string(read(t, docs+"/logins.sh"))
	keys := map[string][]string{
		"fetch": {"raw_keyset"}, "redact": {"raw_keyset", "redacted_keyset", "redaction_key"},
		"llm": {"redacted_keyset", "report_keyset", "answers_keyset", "redaction_key"}, "notify": {"report_keyset", "evidence_key"},
	}
	roles := map[string]string{"workflows": "bookkeeping", "criticizer": "operator"}
	seen := map[string]string{}
	for name, s := range p.Services {
		if !imageVersion.MatchString(s.Image) {
			t.Errorf("the image of %s has no version: %s", name, s.Image)
		}
		var secrets []string
		for _, secret := range s.Secrets {
			secrets = append(secrets, secret.Source)
		}
		if !slices.Equal(secrets, keys[name]) {
			t.Errorf("%s has the keys %v, want %v", name, secrets, keys[name])
		}
		if slices.Contains(workerStages, name) && !slices.Equal(s.Command, []string{"--stages", name}) {
			t.Errorf("%s runs %v", name, s.Command)
		}
		url := s.Environment["CRITICIZER_DATABASE_URL"]
		if url == nil {
			continue
		}
		login := databaseLogin.FindStringSubmatch(*url)[1]
		if other := seen[login]; other != "" {
			t.Errorf("%s and %s have the login %s", name, other, login)
		}
		seen[login] = name
		role := cmp.Or(roles[name], name)
		if line := fmt.Sprintf("\nlogin %s \"$%s_PASSWORD\" criticizer_%s\n", login, strings.ToUpper(strings.TrimPrefix(login, "worker_")), role); name != "migrate" && !strings.Contains(logins, line) {
			t.Errorf("logins.sh lacks %q", line)
		}
	}
	if len(seen) != len(workerStages)+2 { // migrate and people
		t.Errorf("the logins are %v", seen)
	}
}

func deployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	for document := range strings.SplitSeq(string(read(t, docs+"/kubernetes.yaml")), "\n---\n") {
		if strings.Contains(document, "kind: Deployment") {
			if err := yaml.UnmarshalStrict([]byte(document), &d); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// The probes use the worker's port, every mounted volume is defined, and every file
// that is read is mounted.
func TestKubernetesPlacesAgree(t *testing.T) {
	pod := deployment(t).Spec.Template.Spec
	c := pod.Containers[0]
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s is mounted and is no volume", m.Name)
		}
	}
	secrets := string(read(t, docs+"/kubernetes.yaml"))
	listens := ""
	for _, e := range c.Env {
		switch {
		case e.Name == "CRITICIZER_WORKER_LISTEN":
			listens = e.Value
		case strings.HasSuffix(e.Name, "_FILE") && !strings.Contains(secrets, "\n  "+path.Base(e.Value)+": "):
			t.Errorf("%s names %s, which is no key of the secret", e.Name, path.Base(e.Value))
		}
	}
	if port := c.Ports[0]; listens != fmt.Sprintf(":%d", port.ContainerPort) ||
		c.LivenessProbe.HTTPGet.Port.StrVal != port.Name || c.ReadinessProbe.HTTPGet.Port.StrVal != port.Name {
		t.Errorf("the worker listens at %q, its port is %+v", listens, port)
	}
}
