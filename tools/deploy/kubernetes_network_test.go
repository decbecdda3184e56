package deploy

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// selects returns the workloads whose pods a selector matches.
func selects(t *testing.T, o *objects, selector *metav1.LabelSelector) (names []string) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range o.workloads() {
		if s.Matches(labels.Set(w.template.Labels)) {
			names = append(names, w.name)
		}
	}
	return names
}

// The selectors match the pods of the workload with their name and no others. Autoscalers
// scale a Deployment that exists, which then has no number of its own. Stages with two
// workers or more have a disruption budget and spread over nodes, the others have no budget:
// it could keep a node from being drained.
func TestKubernetesSelectorsMatch(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		o := build(t, overlay)
		only := func(kind, name string, selector *metav1.LabelSelector) {
			if got := selects(t, o, selector); !slices.Equal(got, []string{name}) {
				t.Errorf("%s: the %s %s matches the pods of %v", overlay, kind, name, got)
			}
		}
		replicas := map[string]int32{}
		for _, d := range o.deployments {
			only("Deployment", d.Name, d.Spec.Selector)
			if spread := d.Spec.Template.Spec.TopologySpreadConstraints; len(spread) != 1 || spread[0].WhenUnsatisfiable != corev1.ScheduleAnyway {
				t.Errorf("%s: %s spreads by %+v", overlay, d.Name, spread)
			} else {
				only("spread of", d.Name, spread[0].LabelSelector)
			}
			if replicas[d.Name] = 1; d.Spec.Replicas != nil {
				replicas[d.Name] = *d.Spec.Replicas
			}
		}
		scales := func(name, target string, least int32) {
			for _, d := range o.deployments {
				if d.Name == target && d.Spec.Replicas != nil {
					t.Errorf("%s: %s and the Deployment both set a number for %s", overlay, name, target)
				}
			}
			if replicas[target] == 0 || least < 1 {
				t.Errorf("%s: %s scales %s from %d", overlay, name, target, least)
			}
			replicas[target] = least
		}
		for _, h := range o.autoscalers {
			if ref := h.Spec.ScaleTargetRef; ref.APIVersion != "apps/v1" || ref.Kind != "Deployment" || h.Spec.MaxReplicas <= *h.Spec.MinReplicas ||
				len(h.Spec.Metrics) != 1 || h.Spec.Metrics[0].Resource.Name != "cpu" || *h.Spec.Metrics[0].Resource.Target.AverageUtilization < 1 {
				t.Errorf("%s: %s has %+v", overlay, h.Name, h.Spec)
			}
			scales(h.Name, h.Spec.ScaleTargetRef.Name, *h.Spec.MinReplicas)
		}
		for _, s := range o.scaled {
			scales(s.Metadata.Name, s.Spec.ScaleTargetRef.Name, int32(s.Spec.MinReplicaCount)) //nolint:gosec // small
		}
		budgets := map[string]bool{}
		for _, b := range o.disruption {
			only("PodDisruptionBudget", b.Name, b.Spec.Selector)
			if budgets[b.Name] = true; b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 1 || b.Spec.MinAvailable != nil {
				t.Errorf("%s: the budget of %s is %+v", overlay, b.Name, b.Spec)
			}
		}
		for name, n := range replicas {
			if budgets[name] != (n > 1) {
				t.Errorf("%s: %s has %d replicas and a disruption budget: %t", overlay, name, n, budgets[name])
			}
			if several := overlay == "production" && name != "criticizer-retention"; (n > 1) != several {
				t.Errorf("%s: %s has %d replicas", overlay, name, n)
			}
		}
		if len(o.policies) != len(o.workloads()) {
			t.Errorf("%s has %d network policies for %d workloads", overlay, len(o.policies), len(o.workloads()))
		}
		for _, p := range o.policies {
			only("NetworkPolicy", p.Name, &p.Spec.PodSelector)
		}
	}
}

// A pod accepts scrapes and probes and nothing else, and reaches the ports of the servers
// that its stage needs, which are those of its configuration.
func TestNetworkPoliciesName(t *testing.T) {
	t.Parallel()
	always := []string{"UDP 53", "TCP 53", "TCP 5432"}
	servers := map[string][]string{
		"workflows": {"TCP 7233"}, "fetch": {"TCP 7233", "TCP 1666"}, "redact": {"TCP 7233"}, "llm": {"TCP 7233", "TCP 443"},
		"notify": {"TCP 7233", "TCP 587", "TCP 465", "TCP 143", "TCP 993", "TCP 443"}, "retention": {"TCP 7233"}, "rewrite": {"TCP 7233", "TCP 443"},
		"all": {"TCP 7233", "TCP 1666", "TCP 443", "TCP 587"}, "migrate": nil, "allowlist": nil,
	}
	for _, overlay := range overlays {
		o := build(t, overlay)
		for _, p := range o.policies {
			stage := stageOf(p.Name)
			if !sameElements(policyTypes(p), []string{"Egress", "Ingress"}) {
				t.Errorf("%s: %s limits %v", overlay, p.Name, p.Spec.PolicyTypes)
			}
			var in, out []string
			for _, rule := range p.Spec.Ingress {
				in = append(in, portsOf(t, p, rule.Ports)...)
			}
			for _, rule := range p.Spec.Egress {
				out = append(out, portsOf(t, p, rule.Ports)...)
			}
			wantIn := []string{"TCP 9464"}
			if len(o.jobs) > 0 {
				wantIn = nil
			}
			if want := slices.Concat(always, servers[stage]); !sameElements(out, want) || !slices.Equal(in, wantIn) {
				t.Errorf("%s: %s lets in %v and out %v, want %v and %v", overlay, p.Name, in, out, wantIn, want)
			}
		}
		var cfg struct {
			Temporal struct{ Address string }
			P4       struct{ Command, Port string }
		}
		for _, w := range o.workloads() {
			if err := yaml.Unmarshal([]byte(configOf(t, o, w)["criticizer.yaml"]), &cfg); err != nil {
				t.Fatal(err)
			}
			_, port, err := net.SplitHostPort(cfg.Temporal.Address)
			if err != nil || port != "7233" || !strings.HasPrefix(cfg.P4.Port, "ssl:") || !strings.HasSuffix(cfg.P4.Port, ":1666") || cfg.P4.Command != "/usr/local/bin/p4" {
				t.Errorf("%s: the configuration of %s has %+v", overlay, w.name, cfg)
			}
		}
	}
}

func policyTypes(p *networkingv1.NetworkPolicy) (types []string) {
	for _, of := range p.Spec.PolicyTypes {
		types = append(types, string(of))
	}
	return types
}

// portsOf refuses a rule without ports, which allows all.
func portsOf(t *testing.T, p *networkingv1.NetworkPolicy, ports []networkingv1.NetworkPolicyPort) (named []string) {
	t.Helper()
	if len(ports) == 0 {
		t.Errorf("a rule of %s allows all ports", p.Name)
	}
	for _, port := range ports {
		if port.Protocol == nil || port.Port == nil || port.EndPort != nil {
			t.Errorf("%s has the port %+v", p.Name, port)
			continue
		}
		named = append(named, string(*port.Protocol)+" "+strconv.Itoa(port.Port.IntValue()))
	}
	return named
}
