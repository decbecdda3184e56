package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

// Models asks with the key of the provider and nothing else, over the path that
// both OpenAI and Google have.
func TestModels(t *testing.T) {
	t.Parallel()
	var asked []string
	r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked = append(asked, request.Method+" "+request.URL.Path+" "+request.Header.Get("Authorization")+request.Header.Get("X-Goog-Api-Key"))
		if strings.HasPrefix(request.URL.Path, "/v1beta/") {
			_, _ = fmt.Fprint(w, `{"models":[{"name":"models/gemini"}]}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"m"},{"id":"n"}]}`)
	}))
	for provider, want := range map[string][]string{"openai": {"m", "n"}, "google": nil} {
		if models, err := r.Models(t.Context(), provider); err != nil || !slices.Equal(models, want) {
			t.Errorf("%s: %q, %v", provider, models, err)
		}
	}
	slices.Sort(asked)
	if want := []string{"GET /v1/models Bearer " + apiKey, "GET /v1beta/models " + apiKey}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if _, err := r.Models(t.Context(), "acme"); failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("a provider there is not: %v", err)
	}
}

// A provider that refuses a key may echo it: neither the error nor the log holds it.
func TestModelsKeepsTheKey(t *testing.T) {
	t.Parallel()
	r, logs := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"error":{"message":"wrong key `+apiKey+`","code":"invalid_api_key"}}`)
	}))
	for _, provider := range []string{"openai", "google"} {
		if _, err := r.Models(t.Context(), provider); failure.ClassOf(err) != failure.AuthDenied || strings.Contains(err.Error(), apiKey) {
			t.Errorf("%s: %v", provider, err)
		}
	}
	if strings.Contains(logs.String(), apiKey) {
		t.Errorf("the log holds the key: %s", logs)
	}
}
