package review

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

func TestParseChangelist(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Changelist{"1": 1, "4711": 4711, "9999999999": 9999999999} {
		got, err := ParseChangelist(text)
		if err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

// The number becomes an argument of p4: only digits are accepted (security 9.2).
func TestParseChangelistRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "zero": "0", "leading zero": "07", "sign": "+7", "negative": "-7", "blank before": " 7",
		"line end after": "7\n", "two numbers": "7 8", "default changelist": "default", "fraction": "7.0",
		"hexadecimal": "0x7", "underscore": "1_000", "eleven digits": "10000000000", "other digits": "\u0667",
		"option": "-x", "shell": "7;id", "revision": "@7", "NUL": "7\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseChangelist(text); err == nil {
				t.Errorf("%q is taken for %d", text, got)
			}
		})
	}
}

func TestDefaultKey(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"p4":            "review-p4-4711-v2",
		"Edge.eu-1_a":   "review-Edge.eu-1_a-4711-v2",
		"ssl:host:1666": "review-ssl_host_1666-4711-v2",
		"a b/c\n\u00e9": "review-a_b_c__-4711-v2",
		"":              "review--4711-v2",
	} {
		key := DefaultKey(server, 4711, 2)
		if key != want {
			t.Errorf("key of server %q is %q, want %q", server, key, want)
		}
		if err := (Request{Changelist: 4711, Version: 2, ServerID: server, Key: key}).Validate(); err != nil {
			t.Errorf("the default key of server %q is not valid: %v", server, err)
		}
	}
}

func TestRequestValidate(t *testing.T) {
	t.Parallel()
	good := Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}
	tests := map[string]struct {
		change func(*Request)
		want   string // part of the error, empty if valid
	}{
		"as made":             {func(*Request) {}, ""},
		"a caller's own key":  {func(r *Request) { r.Key = "ci/build:7@main+x_1.0" }, ""},
		"the longest key":     {func(r *Request) { r.Key = strings.Repeat("k", 200) }, ""},
		"no changelist":       {func(r *Request) { r.Changelist = 0 }, "changelist 0 is not positive"},
		"negative changelist": {func(r *Request) { r.Changelist = -1 }, "changelist -1"},
		"no version":          {func(r *Request) { r.Version = 0 }, "review version 0 is not positive"},
		"no key":              {func(r *Request) { r.Key = "" }, `idempotency key ""`},
		"a key too long":      {func(r *Request) { r.Key = strings.Repeat("k", 201) }, "1 to 200"},
		"a key with a blank":  {func(r *Request) { r.Key = "a b" }, `"a b"`},
		"a key with a line":   {func(r *Request) { r.Key = "a\n" }, `"a\n"`},
		"a key like a flag":   {func(r *Request) { r.Key = "-rf" }, "beginning with a letter or digit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good
			tt.change(&r)
			err := r.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

// The field names are wire format.
func TestRequestFieldNames(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Request{Changelist: 7, Version: 1, ServerID: "p4", Key: "k"})
	testkit.NoError(t, err)
	if want := `{"changelist":7,"review_version":1,"server_id":"p4","idempotency_key":"k"}`; string(got) != want {
		t.Errorf("request is %s, want %s", got, want)
	}
}
