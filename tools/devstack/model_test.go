package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// Demo and up start nothing for a model that cannot review, and say in one sentence which,
// why and what to set.
func TestTheModelIsCheckedFirst(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	testkit.NoError(t, dead.Close())
	refusing := serve(t, llmsim.New(llmsim.Config{APIKey: secret.New("right")}))
	elsewhere := serve(t, http.NotFoundHandler())
	for name, c := range map[string]struct {
		url, model, key string
		want            []string // in the error
	}{
		"nothing listens":     {"http://" + dead.Addr().String() + "/v1", "m", "", []string{"connection refused", "CRITICIZER_LLM_BASE_URL"}},
		"a host without name": {"https://nosuch.invalid/v1", "m", "k", []string{"nosuch.invalid", "CRITICIZER_LLM_BASE_URL"}},
		"another path":        {elsewhere + "/v2", "m", "", []string{"404", "CRITICIZER_LLM_BASE_URL"}},
		"no scheme":           {"localhost:11434/v1", "m", "", []string{"HTTP URL", "CRITICIZER_LLM_BASE_URL"}},
		"a key is refused":    {refusing + "/v1", "m", "wrong", []string{"refused", "OPENAI_API_KEY"}},
		"no model":            {refusing + "/v1", "", "right", []string{"CRITICIZER_LLM_MODEL"}},
	} {
		for _, command := range []string{"demo", "up"} {
			t.Run(name+", "+command, func(t *testing.T) {
				root := makeClone(t)
				mustWrite(t, filepath.Join(root, "tools", "temporal", "go.mod"), "module temporal\n", 0o644)
				t.Chdir(root)
				setModel(t, c.url, c.model, c.key)
				var progress bytes.Buffer
				err := runCommand(t.Context(), []string{command}, &progress, &progress)
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range append(c.want, c.url) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q has no %q", err, want)
					}
				}
				if strings.Contains(err.Error(), "\n") || strings.Contains(progress.String(), "building") {
					t.Errorf("error %q after:\n%s", err, &progress)
				}
				if started, _ := os.ReadDir(filepath.Join(root, "build", "dev", "log")); len(started) > 0 {
					t.Errorf("%v was started", started)
				}
			})
		}
	}
}

// A demo with another model does not show the reviews of the first.
func TestTheModelIsPartOfTheDemo(t *testing.T) {
	t.Chdir(makeClone(t))
	mustWrite(t, filepath.Join("tools", "temporal", "go.mod"), "module temporal\n", 0o644)
	ids := map[string]string{}
	for _, c := range [][3]string{
		{}, {"", "llmsim-2"}, {"http://localhost:1/v1", "m"}, {"http://localhost:2/v1", "m"}, {"http://localhost:1/v1", "n"}, {"", "", "key"}, {"", "m", "key"},
	} {
		setModel(t, c[0], c[1], c[2])
		for _, url := range []string{c[0], c[0] + "/"} {
			if c[0] != "" {
				t.Setenv("CRITICIZER_LLM_BASE_URL", url)
			}
			opts, _, err := parseOptions(nil, nil)
			testkit.NoError(t, err)
			d, err := openDepot(t.Context(), opts)
			testkit.NoError(t, err)
			if same, ok := ids[d.id]; ok && same != strings.Join(c[:], " ") {
				t.Errorf("%q and %q share %s", same, c, d.id)
			}
			ids[d.id] = strings.Join(c[:], " ")
		}
	}
	if len(ids) != 7 {
		t.Errorf("%d ids of 7 models: a slash at the end of the URL makes another", len(ids))
	}
}

func setModel(t *testing.T, url, model, key string) {
	t.Helper()
	for name, value := range map[string]string{"CRITICIZER_LLM_BASE_URL": url, "CRITICIZER_LLM_MODEL": model, "OPENAI_API_KEY": key, "OPENAI_API_KEY_FILE": ""} {
		t.Setenv(name, value)
	}
}

func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
