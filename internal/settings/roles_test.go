package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/internal/testkit"
)

func TestSecretsAreThoseOfTheRoles(t *testing.T) {
	t.Parallel()
	c, err := load(t, "", map[string]string{
		"CRITICIZER_DATABASE_URL": "postgres://u:p@host/d", "OPENAI_API_KEY": "key", "CRITICIZER_MAIL_JOURNAL_PASSWORD": "p",
	})
	testkit.NoError(t, err)
	for name, tt := range map[string]struct {
		roles []Role
		want  []string
	}{
		"of no role":                    {nil, nil},
		"of the model's stage":          {[]Role{RoleLLM}, []string{"CRITICIZER_DATABASE_URL", "OPENAI_API_KEY"}},
		"of stages that share a secret": {[]Role{RoleFetch, RoleRedact}, []string{"CRITICIZER_DATABASE_URL"}},
		"of a section in a section":     {[]Role{RoleNotify}, []string{"CRITICIZER_DATABASE_URL", "CRITICIZER_MAIL_JOURNAL_PASSWORD"}},
	} {
		var got []string
		for _, s := range c.Secrets(tt.roles...) {
			got = append(got, s.Variable)
			if !s.IsSet() {
				t.Errorf("%s: %s is not set", name, s.Variable)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: secrets are %q, want %q", name, got, tt.want)
		}
	}
}

// The trigger ignores the sections that the workers read, and no others.
func TestTriggerKnowsTheOtherSections(t *testing.T) {
	t.Parallel()
	var others []string
	for _, s := range Program.Settings(new(Config)) {
		own := slices.ContainsFunc(trigger.Program.Settings(new(trigger.Config)), func(o config.Setting) bool { return o.Name == s.Name })
		if s.Section && !own && !strings.Contains(s.Name, ".") {
			others = append(others, s.Name)
		}
	}
	if !slices.Equal(others, trigger.Program.Others) {
		t.Errorf("the sections are\n%q, want\n%q", trigger.Program.Others, others)
	}
}
