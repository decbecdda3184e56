package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

// plain is the text of the secrets. No output may contain it.
const plain = "correct-horse-battery"

// A holder has secrets in exported and unexported fields: fmt calls the methods of
// exported fields only.
type holder struct {
	Exported secret.Value
	hidden   secret.Value
	list     []secret.Value
	keyed    map[string]secret.Value
	pointer  *secret.Value
}

func newHolder() holder {
	s := secret.New(plain)
	return holder{s, s, []secret.Value{s}, map[string]secret.Value{"key": s}, &s}
}

// Tokens and passwords are never printed (security 9.3.3).
func TestValueIsMaskedByFmt(t *testing.T) {
	t.Parallel()
	s := secret.New(plain)
	for verb := range strings.SplitSeq("%v %+v %#v %s %q %x %X %d %t %p %U %e %b %c %o %w %T %5.2v %-40s %!", " ") {
		for name, arg := range map[string]any{
			"value": s, "pointer": &s, "slice": []secret.Value{s}, "any": []any{s},
			"holder": newHolder(), "pointer to holder": new(newHolder()),
		} {
			assertMasked(t, verb+" of "+name, fmt.Sprintf(verb, arg))
		}
	}
	if got := fmt.Sprintf("%v %s %q %+v %#v", s, s, s, s, s); got != strings.TrimSpace(strings.Repeat("[secret] ", 5)) {
		t.Errorf("fmt prints %q, want the mask five times", got)
	}
}

func TestValueIsMaskedByEncoders(t *testing.T) {
	t.Parallel()
	encoders := map[string]func(any) ([]byte, error){
		"json": json.Marshal,
		"yaml": yaml.Marshal,
	}
	for name, marshal := range encoders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range []any{secret.New(plain), newHolder(), map[string]any{"password": secret.New(plain)}} {
				out, err := marshal(v)
				testkit.NoError(t, err)
				assertMasked(t, name, string(out))
				if !strings.Contains(string(out), "[secret]") {
					t.Errorf("%s wrote %q, want the mask in it", name, out)
				}
			}
		})
	}
	t.Run("xml", func(t *testing.T) {
		t.Parallel()
		out, err := xml.Marshal(struct {
			XMLName xml.Name     `xml:"c"`
			A       secret.Value `xml:"a,attr"`
			B       secret.Value
		}{A: secret.New(plain), B: secret.New(plain)})
		testkit.NoError(t, err)
		assertMasked(t, "xml", string(out))
	})
	t.Run("json key", func(t *testing.T) {
		t.Parallel()
		out, err := json.Marshal(map[secret.Value]int{secret.New(plain): 1})
		testkit.NoError(t, err)
		assertMasked(t, "json key", string(out))
	})
}

func TestValueIsMaskedBySlog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		s := secret.New(plain)
		slog.New(h).With("with", s).WithGroup("g").Info("said",
			"value", s, "pointer", &s, "holder", newHolder(), slog.Group("nested", "any", []any{s}))
	}
	assertMasked(t, "slog", out.String())
}

func TestValueIsMaskedInPanic(t *testing.T) {
	if kind := os.Getenv("SECRET_TEST_PANIC"); kind != "" {
		panicWith(kind)
	}
	t.Parallel()
	for _, kind := range []string{"value", "error", "holder"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestValueIsMaskedInPanic$")
		cmd.Env = append(os.Environ(), "SECRET_TEST_PANIC="+kind)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: ") {
			t.Fatalf("panic with %s: the process did not panic: %v\n%s", kind, err, out)
		}
		assertMasked(t, "panic with "+kind, string(out))
	}
}

func panicWith(kind string) {
	switch kind {
	case "value":
		panic(secret.New(plain))
	case "error":
		panic(fmt.Errorf("log in with %v", newHolder()))
	default:
		panic(newHolder())
	}
}

func assertMasked(t *testing.T, what, out string) {
	t.Helper()
	for _, leak := range []string{plain, fmt.Sprintf("%x", plain), fmt.Sprintf("%X", plain)} {
		if strings.Contains(out, leak) {
			t.Errorf("%s shows the secret: %s", what, out)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": {""}, plain: {plain}, plain + "\nold": {plain, "old"}, "\r\n" + plain + " \r\n\nold\n": {plain + " ", "old"}, "a\nb\nc": {"a", "b", "c"},
	} {
		var got []string
		for _, key := range secret.New(text).Keys() {
			got = append(got, key.Reveal())
		}
		if err := secret.CheckKeys(secret.New(text)); !slices.Equal(got, want) || (err != nil) != (len(want) > 2) {
			t.Errorf("%q holds %q, %v", text, got, err)
		}
	}
}

// A mask that was stored by accident must not be decoded as a secret.
func TestValueCannotBeDecoded(t *testing.T) {
	t.Parallel()
	var decoded map[string]secret.Value
	if err := json.Unmarshal([]byte(`{"password": "[secret]"}`), &decoded); err == nil {
		t.Errorf("JSON was decoded into secrets: %q", decoded["password"].Reveal())
	}
}
