package settings

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/artifact"
)

// A worker that has the secrets of its stage opens the artifacts of its stage and no
// others.
func TestStagesOpenTheirOwnArtifacts(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CRITICIZER_CONFIG": os.DevNull}
	for _, purpose := range KeysetPurposes {
		keyset, err := artifact.NewKeyset(artifact.KEK{})
		if err != nil {
			t.Fatal(err)
		}
		env["CRITICIZER_"+strings.ToUpper(purpose)+"_KEYSET"] = keyset.Reveal()
	}
	all, err := Load("", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[Role][]review.Namespace{
		RoleWorkflows: nil,
		RoleFetch:     {review.NamespaceRaw},
		RoleRedact:    {review.NamespaceRaw, review.NamespaceRedacted},
		RoleLLM:       {review.NamespaceRedacted, review.NamespaceReport, review.NamespaceAnswer},
		RoleNotify:    {review.NamespaceReport},
		RoleRetention: nil,
	} {
		given := map[string]string{"CRITICIZER_CONFIG": os.DevNull}
		for _, s := range all.Secrets(role) {
			given[s.Variable] = s.Reveal()
		}
		cfg, err := Load("", func(name string) string { return given[name] })
		if err != nil {
			t.Fatal(err)
		}
		var opens []review.Namespace
		for _, ns := range []review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceReport, review.NamespaceAnswer} {
			if _, err := artifact.New(nil, cfg.ArtifactConfig(ns)); err == nil {
				opens = append(opens, ns)
			}
		}
		if !slices.Equal(opens, want) {
			t.Errorf("stage %s opens %v, want %v", role, opens, want)
		}
	}
}
