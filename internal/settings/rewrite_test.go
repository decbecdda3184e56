package settings

import (
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
)

// A key must not cross a network in clear, and an old key needs a new one.
func TestCheckOfRewriteProviders(t *testing.T) {
	t.Parallel()
	key := secret.New("key")
	for name, tt := range map[string]struct {
		change func(*Rewrite)
		want   []string
	}{
		"as shipped":                   {func(*Rewrite) {}, nil},
		"with a key":                   {func(r *Rewrite) { r.OpenAI.APIKey = key }, nil},
		"no provider":                  {func(r *Rewrite) { r.OpenAI.BaseURL, r.Google.BaseURL = "", "" }, nil},
		"a server on this host":        {func(r *Rewrite) { r.Other.BaseURL, r.Other.APIKey = "http://127.0.0.1:8000/v1", key }, nil},
		"a server without a key":       {func(r *Rewrite) { r.Other.BaseURL = "https://models.example/v1" }, nil},
		"a key in clear":               {func(r *Rewrite) { r.Other.BaseURL, r.Other.APIKey = "http://models.example/v1", key }, []string{"rewrite.other.base_url"}},
		"a URL with a password":        {func(r *Rewrite) { r.Google.BaseURL = "https://ann:x@example.com" }, []string{"rewrite.google.base_url"}},
		"an old key without a new one": {func(r *Rewrite) { r.OpenAI.APIKeyOld = key }, []string{"CRITICIZER_REWRITE_OPENAI_API_KEY_OLD"}},
		"limits of zero":               {func(r *Rewrite) { r.Timeout, r.MaxAnswerTokens = 0, 0 }, []string{"rewrite.timeout", "rewrite.max_answer_tokens"}},
	} {
		c := complete(t)
		tt.change(&c.Rewrite)
		got := fieldsIn(c.Check(RoleRewrite))
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: problems with %v, want %v", name, got, tt.want)
		}
	}
}
