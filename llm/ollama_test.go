package llm

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/review"
)

// startOllama starts the server of CRITICIZER_TEST_OLLAMA on a free port with its default
// settings, and creates a model under a name for each of models.
func startOllama(t *testing.T, models map[string]tinyModel) (baseURL string) {
	t.Helper()
	binary := os.Getenv("CRITICIZER_TEST_OLLAMA")
	if binary == "" {
		t.Skip("CRITICIZER_TEST_OLLAMA is not set: make endpointtest sets it")
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := port.Addr().String()
	_ = port.Close()
	home := t.TempDir()
	env := append(os.Environ(), "HOME="+home, "OLLAMA_HOST="+address, "OLLAMA_MODELS="+filepath.Join(home, "models"), "OLLAMA_CONTEXT_LENGTH=")
	var logs syncBuffer
	server := exec.Command(binary, "serve")
	server.Env, server.Stdout, server.Stderr = env, &logs, &logs
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL) // with the runner of the model
		_ = server.Wait()
		if t.Failed() {
			t.Logf("log of the server:\n%s", logs.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; {
		resp, err := http.Get("http://" + address + "/api/version")
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
	}
	for name, m := range models {
		dir := t.TempDir()
		const template = `{{ range .Messages }}[{{ .Role }}]{{ .Content }}{{ end }}[assistant]`
		for file, content := range map[string][]byte{
			"tiny.gguf": m.gguf(), "Modelfile": []byte("FROM ./tiny.gguf\nTEMPLATE \"\"\"" + template + "\"\"\"\n"),
		} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		create := exec.Command(binary, "create", name, "-f", "Modelfile")
		create.Dir, create.Env = dir, env
		if out, err := create.CombinedOutput(); err != nil {
			t.Fatalf("create %s: %v\n%s", name, err, out)
		}
	}
	return "http://" + address + "/v1"
}

// A real Ollama with its default context cuts a prompt without an error. Its models
// answer as they are told to here: none can copy a check code.
func TestOllama(t *testing.T) {
	base := startOllama(t, map[string]tinyModel{
		"clean": {chain: []string{`{"findings":[]}`}}, "coded": {chain: []string{`{"codes":["00000000"],"findings":[]}`}},
		"loop": {chain: []string{"hmm "}, loops: true}, "random": {},
	})
	reviewer := func(model string, change ...func(*Config)) *Reviewer {
		r, _ := newReviewer(t, http.NotFoundHandler(), append([]func(*Config){func(c *Config) {
			c.BaseURL, c.Model, c.MaxAnswerTokens, c.Timeout = base, model, 300, time.Minute
		}}, change...)...)
		return r
	}
	text := func(c *Config) { c.Extra = `{"response_format": {"type": "text"}}` }
	ask := func(r *Reviewer, model, user string, limit int, format endpoint.Format) (endpoint.Answer, error) {
		text, err := r.guard.Compose(user)
		if err != nil {
			t.Fatal(err)
		}
		return r.endpoint.Ask(t.Context(), endpoint.Request{Model: model, User: text, MaxTokens: limit, Format: format, Name: "review", Schema: json.RawMessage(r.prompts.schema)})
	}
	t.Run("cut prompts are not a clean review", func(t *testing.T) {
		// A byte is a token, so even a change of one line exceeds the context, and what
		// the server reports is more than our estimate.
		for _, model := range []string{"clean", "coded"} {
			d, err := reviewer(model, text).Review(t.Context(), redacted(t, added("//depot/a.go", "x")), review.Options{})
			if failure.ClassOf(err) != failure.PromptTruncated || read(d) > 0 || d.Usage.Calls != 2 || d.Usage.PromptTokens != 2*4_096 {
				t.Errorf("%s: draft %+v, error %v", model, d, err)
			}
		}
	})
	t.Run("is detected, with its context", func(t *testing.T) {
		if _, err := ask(reviewer("clean"), "clean", "ready?", 5, endpoint.FormatText); err != nil { // loads the model
			t.Fatal(err)
		}
		if shown := reviewer("clean").Describe(t.Context()); !strings.Contains(shown, "dialect ollama") || !strings.Contains(shown, "context of 4096 tokens") {
			t.Errorf("shows %q", shown)
		}
	})
	t.Run("the limit is kept", func(t *testing.T) {
		done, err := ask(reviewer("loop"), "loop", "go on", 12, endpoint.FormatText)
		if spent := max(done.Usage.CompletionTokens, done.Parts); err != nil || spent > 14 {
			t.Errorf("%d tokens of 12, error %v", spent, err)
		}
	})
	t.Run("the schema is enforced", func(t *testing.T) {
		done, err := ask(reviewer("random"), "random", "Answer in JSON.", 60, endpoint.FormatSchema)
		if err != nil || !begins.MatchString(done.Content) || !strings.HasPrefix(done.Content, `{`) {
			t.Errorf("answer %q, error %v", done.Content, err)
		}
	})
	t.Run("an unknown model is not found", func(t *testing.T) {
		err := reviewer("missing").Ping(t.Context())
		if e, ok := errors.AsType[*failure.Error](err); !ok || e.Class != failure.ConfigInvalid {
			t.Errorf("error %v", err)
		}
	})
	if size := len(tinyModel{}.gguf()); size > 1<<20 {
		t.Errorf("a model has %d bytes", size)
	}
}
