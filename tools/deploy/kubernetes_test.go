package deploy

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	manifests = docs + "/kubernetes"
	mounted   = "/run/secrets/criticizer"
)

// overlays are the directories that people apply.
var overlays = []string{"production", "production/migrate", "production/allowlist", "production/rewrite/migrate", "production/rewrite", "trial"}

// objects are what kubectl apply -k sends for an overlay.
type objects struct {
	documents   []string // as YAML
	deployments []*appsv1.Deployment
	jobs        []*batchv1.Job
	policies    []*networkingv1.NetworkPolicy
	disruption  []*policyv1.PodDisruptionBudget
	autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	scaled      []*scaledObject
	configs     []*corev1.ConfigMap
	secrets     []*corev1.Secret
	accounts    []*corev1.ServiceAccount
	namespaces  []*corev1.Namespace
}

// A workload is a Deployment or a Job.
type workload struct {
	name, stage string
	template    corev1.PodTemplateSpec
}

func (o *objects) workloads() (all []workload) {
	for _, d := range o.deployments {
		all = append(all, workload{d.Name, stageOf(d.Name), d.Spec.Template})
	}
	for _, j := range o.jobs {
		all = append(all, workload{j.Name, stageOf(j.Name), j.Spec.Template})
	}
	return all
}

// stageOf returns the part of a name after the first dash. The worker of the trial has none.
func stageOf(name string) string {
	_, stage, ok := strings.Cut(name, "-")
	if !ok {
		return "all"
	}
	return stage
}

// main returns the container that runs Criticizer.
func (w workload) main() corev1.Container {
	return w.template.Spec.Containers[0]
}

// build builds an overlay as kubectl does. The files of its secrets, which are in no
// repository, hold REPLACE and their own name.
func build(t *testing.T, overlay string) *objects {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(manifests)); err != nil {
		t.Fatal(err)
	}
	for file, k := range kustomizations(t) {
		for _, s := range k.SecretGenerator {
			for _, source := range s.FileSources {
				_, name, ok := strings.Cut(source, "=")
				if !ok {
					name = source
				}
				name = filepath.Join(dir, path.Dir(file), name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte("REPLACE "+filepath.Base(name)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "overlays", overlay))
	if err != nil {
		t.Fatalf("%s: %v", overlay, err)
	}
	o := &objects{}
	for _, r := range built.Resources() {
		document, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		o.add(t, document)
	}
	return o
}

// add decodes a document into the type of its API version and kind. Unknown fields are errors.
func (o *objects) add(t *testing.T, document []byte) {
	t.Helper()
	var of metav1.TypeMeta
	if err := yaml.Unmarshal(document, &of); err != nil {
		t.Fatal(err)
	}
	o.documents = append(o.documents, string(document))
	var into any
	switch of.APIVersion + " " + of.Kind {
	case "apps/v1 Deployment":
		into = appendTo(&o.deployments)
	case "batch/v1 Job":
		into = appendTo(&o.jobs)
	case "networking.k8s.io/v1 NetworkPolicy":
		into = appendTo(&o.policies)
	case "policy/v1 PodDisruptionBudget":
		into = appendTo(&o.disruption)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		into = appendTo(&o.autoscalers)
	case "keda.sh/v1alpha1 ScaledObject":
		into = appendTo(&o.scaled)
	case "v1 ConfigMap":
		into = appendTo(&o.configs)
	case "v1 Secret":
		into = appendTo(&o.secrets)
	case "v1 ServiceAccount":
		into = appendTo(&o.accounts)
	case "v1 Namespace":
		into = appendTo(&o.namespaces)
	default:
		t.Fatalf("unknown kind %s %q", of.APIVersion, of.Kind)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Errorf("%s: %v\n%s", of.Kind, err, document)
	}
}

func appendTo[T any](list *[]*T) *T {
	*list = append(*list, new(T))
	return (*list)[len(*list)-1]
}

// kustomizations returns every kustomization.yaml by its path below manifests.
func kustomizations(t *testing.T) map[string]kustomize.Kustomization {
	t.Helper()
	found := map[string]kustomize.Kustomization{}
	err := fs.WalkDir(os.DirFS(manifests), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || path.Base(name) != "kustomization.yaml" {
			return err
		}
		var k kustomize.Kustomization
		if err := k.Unmarshal(read(t, manifests+"/"+name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found[name] = k
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 15 {
		t.Fatalf("there are only %d kustomizations", len(found))
	}
	return found
}

// The directory holds no secret: only manifests and configuration, and secrets are read from
// files that git ignores.
func TestManifestsHoldNoSecret(t *testing.T) {
	err := fs.WalkDir(os.DirFS(manifests), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if ext := path.Ext(name); ext != ".yaml" && ext != ".toml" && name != "overlays/.gitignore" {
			t.Errorf("%s is neither manifest nor configuration", name)
		}
		if bytes.Contains(read(t, manifests+"/"+name), []byte("kind: Secret")) {
			t.Errorf("%s has a Secret", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ignored := string(read(t, manifests+"/overlays/.gitignore")); !strings.HasSuffix(ignored, "\n*\n!*/\n!*.yaml\n!*.toml\n!.gitignore\n") {
		t.Errorf("git ignores %q", ignored)
	}
	n := 0
	for file, k := range kustomizations(t) {
		for _, s := range k.SecretGenerator {
			if n++; len(s.LiteralSources) > 0 || len(s.EnvSources) > 0 || s.EnvSource != "" || len(s.FileSources) == 0 {
				t.Errorf("%s: %s is made of %+v", file, s.Name, s.KvPairSources)
			}
			for _, source := range s.FileSources {
				if ext := path.Ext(source); ext == ".yaml" || ext == ".toml" {
					t.Errorf("%s: git does not ignore %s", file, source)
				}
			}
		}
	}
	if n != 11 {
		t.Errorf("there are %d generators of secrets", n)
	}
	secret := secretVariables(t)
	for _, overlay := range overlays {
		o := build(t, overlay)
		for _, s := range o.secrets {
			for key, value := range s.Data {
				if !strings.HasPrefix(string(value), "REPLACE ") {
					t.Errorf("%s: %s of %s is %q", overlay, key, s.Name, value)
				}
			}
		}
		for _, w := range o.workloads() {
			for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
				for _, e := range c.Env {
					if secret[e.Name] || e.ValueFrom != nil {
						t.Errorf("%s: %s of %s has a secret in its environment, in %s", overlay, c.Name, w.name, e.Name)
					}
				}
			}
		}
	}
}
