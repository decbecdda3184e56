package settings

import (
	"slices"
	"testing"

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
