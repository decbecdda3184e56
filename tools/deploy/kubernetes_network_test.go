package deploy

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// Each workload has one network policy, which limits both directions and selects only its
// pods. No rule allows all ports.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		o := build(t, overlay)
		if len(o.policies) != len(o.workloads()) {
			t.Errorf("%s has %d network policies for %d workloads", overlay, len(o.policies), len(o.workloads()))
		}
		for _, p := range o.policies {
			if got := selects(t, o, &p.Spec.PodSelector); !slices.Equal(got, []string{p.Name}) {
				t.Errorf("%s: the policy %s matches the pods of %v", overlay, p.Name, got)
			}
			if len(p.Spec.PolicyTypes) != 2 || p.Spec.PolicyTypes[0] == p.Spec.PolicyTypes[1] {
				t.Errorf("%s: %s limits %v", overlay, p.Name, p.Spec.PolicyTypes)
			}
			var ports [][]networkingv1.NetworkPolicyPort
			for _, rule := range p.Spec.Ingress {
				ports = append(ports, rule.Ports)
			}
			for _, rule := range p.Spec.Egress {
				ports = append(ports, rule.Ports)
			}
			for _, allowed := range ports {
				if len(allowed) == 0 || slices.ContainsFunc(allowed, func(n networkingv1.NetworkPolicyPort) bool { return n.Port == nil || n.EndPort != nil }) {
					t.Errorf("%s: a rule of %s has the ports %+v", overlay, p.Name, allowed)
				}
			}
		}
	}
}
