package llm_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// rawToken has the form of a secret. It must never be sent.
const rawToken = "AK" + "IA" + "6YPUJNNVRAD7FMJM"

// overwrite sets the string fields of a Text by unsafe means: the text, and the
// version of the pipeline that made it.
func overwrite(t *testing.T, text *redaction.Text, values ...string) {
	t.Helper()
	v := reflect.ValueOf(text).Elem()
	for i, value := range values {
		field := v.Field(i)
		if field.Kind() != reflect.String {
			t.Fatalf("field %d of a Text is a %s: the test does not know how to forge one", i, field.Kind())
		}
		reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().SetString(value)
	}
}

// A text that no pipeline made is blocked, even if it was forged by unsafe means
// (security 9.5.5).
func TestForgedTextsAreBlocked(t *testing.T) {
	t.Parallel()
	p := pipeline(t, redaction.Config{})
	for name, forge := range map[string]func(t *testing.T, c *redaction.Change){
		"the text of another was put into it": func(t *testing.T, c *redaction.Change) {
			overwrite(t, &c.Description, "a name only we know")
		},
		"a text was made of nothing": func(t *testing.T, c *redaction.Change) {
			c.Jobs = append(c.Jobs, redaction.Text{})
			overwrite(t, &c.Jobs[len(c.Jobs)-1], "a name only we know", p.Version())
		},
		"one of the code around it": func(t *testing.T, c *redaction.Change) {
			c.Context = append(c.Context, redaction.Block{})
			overwrite(t, &c.Context[0].Text, "a name only we know", p.Version())
		},
		"one of the rules of teams": func(t *testing.T, c *redaction.Change) {
			c.Rules = append(c.Rules, redaction.RuleFile{})
			overwrite(t, &c.Rules[0].Text, "a name only we know", p.Version())
		},
		"its bytes were changed": func(t *testing.T, c *redaction.Change) {
			b := []byte(c.Files[0].Diff.String())
			overwrite(t, &c.Files[0].Diff, string(bytes.ToUpper(b)))
		},
		"its bytes were changed in place": func(_ *testing.T, c *redaction.Change) {
			s := c.Files[0].Diff.String()
			b := unsafe.Slice(unsafe.StringData(s), len(s))
			copy(b[len(b)-4:], "name")
		},
		"two of its texts were joined": func(t *testing.T, c *redaction.Change) {
			overwrite(t, &c.Description, c.Description.String()+c.User.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := p.Change(review.Change{
				Number: 4711, User: "ann", Description: "Write to bob@corp.example\n",
				Files: []review.File{{DepotPath: "//depot/a.c", Action: review.ActionEdit, Type: "text", Diff: strings.Clone("@@ -1 +1 @@\n-password = 'Xk29dkQ0dks!'\n+int b;\n")}},
			})
			if err != nil {
				t.Fatal(err)
			}
			forge(t, &c)
			if n, err := reviewBehind(t, p, c, "m"); failure.ClassOf(err) != failure.RedactionBlocked || n != 0 {
				t.Errorf("%d requests left, error %v: want none and class %s", n, err, failure.RedactionBlocked)
			}
		})
	}
}

// Without unsafe means, a Text is empty or made by a pipeline.
func TestNoDecoderMakesAText(t *testing.T) {
	t.Parallel()
	var held struct{ Text redaction.Text }
	for _, forged := range []string{`"raw"`, `{"s":"raw"}`, `{"S":"raw","By":"1"}`, `{"s":"raw","by":"1","sum":1}`} {
		if err := json.Unmarshal([]byte(`{"Text":`+forged+`}`), &held); err == nil && held.Text.String() != "" {
			t.Errorf("JSON made %q", held.Text)
		}
	}
	if err := xml.Unmarshal([]byte(`<held><Text>raw<s>raw</s></Text></held>`), &held); err == nil && held.Text.String() != "" {
		t.Errorf("XML made %q", held.Text)
	}
	var stream bytes.Buffer
	if err := gob.NewEncoder(&stream).Encode(struct{ Text struct{ S, By string } }{struct{ S, By string }{"raw", "1"}}); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&stream).Decode(&held); err == nil && held.Text.String() != "" {
		t.Errorf("gob made %q", held.Text)
	}
	if _, err := fmt.Sscan("raw", &held.Text); err == nil {
		t.Error("fmt scanned a Text")
	}
	field := reflect.ValueOf(&held.Text).Elem().Field(0)
	if field.CanSet() {
		t.Error("reflection may set the text of a Text")
	}
	for _, other := range []any{"", []byte(nil), struct{ s, by string }{}} {
		if reflect.TypeOf(other).ConvertibleTo(reflect.TypeOf(held.Text)) {
			t.Errorf("a %T can be converted to a Text", other)
		}
	}
}

// Two redacted parts may form a secret together. The guard therefore checks the
// whole request body, including fields that no change fills.
func TestSecretsOfHalvesAreBlocked(t *testing.T) {
	t.Parallel()
	p := pipeline(t, redaction.Config{})
	c, err := p.Change(review.Change{
		Number: 4711, User: rawToken[:9], Description: rawToken[9:], Jobs: []string{rawToken[:6], rawToken[6:]},
		Files: []review.File{
			{DepotPath: "//depot/" + rawToken[:10], Type: rawToken[10:], Action: review.ActionEdit, Diff: "@@ -1 +1 @@\n-a\n+" + rawToken[:8] + "\n"},
			{DepotPath: rawToken[8:], FromPath: rawToken[:8], Action: review.ActionEdit, Type: "text", Diff: "@@ -1 +1 @@\n-a\n+" + rawToken[8:] + "\n"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := reviewBehind(t, p, c, "m"); n == 0 && failure.ClassOf(err) != failure.RedactionBlocked {
		t.Errorf("nothing left, but of error %v", err)
	}
	for name, body := range map[string]string{
		"a message of two halves":       `{"messages":[{"content":"` + rawToken[:9] + rawToken[9:] + `"}]}`,
		"escaped in a string of a JSON": `{"user":"{\"a\":\"\\u0041KIA6YPUJNNVRAD7FMJM\"}"}`,
		"joined by who reads it":        `{"user":"\"AKIA6YPUJ\" + \"NNVRAD7FMJM\""}`,
		"between zero-width characters": `{"user":"AKIA6YPUJ\u200bNNVRAD7FMJM"}`,
		"a number too long to decode":   `{"user":1e` + strings.Repeat("9", 1000) + `,"b":"` + rawToken + `"}`,
		"not UTF-8":                     "{\"user\":\"AKIA6YPUJ\xff\",\"b\":\"" + rawToken + "\"}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := p.Check([]byte(body))
			if failure.ClassOf(err) != failure.RedactionBlocked {
				t.Fatalf("error is %v: want class %s", err, failure.RedactionBlocked)
			}
			if strings.Contains(err.Error(), rawToken) {
				t.Errorf("the error shows what was blocked: %v", err)
			}
		})
	}
}
